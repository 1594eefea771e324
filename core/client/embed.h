/* embed.h - the supervisor's executable as bytes of this module (embed.S)
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_CLIENT_EMBED_H
#define WV_CLIENT_EMBED_H

#include <stdint.h>

extern const uint8_t wv_supervisor_image[];
extern const uint8_t wv_supervisor_image_end[];

#endif
