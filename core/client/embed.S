/* embed.S - the supervisor's executable as bytes of this module
 *
 * SPDX-License-Identifier: MIT */
#ifdef __CET__
#include <cet.h>
#endif

    .section .rodata.wv_supervisor, "a", %progbits
    .balign 64
    .globl wv_supervisor_image, wv_supervisor_image_end
    .hidden wv_supervisor_image, wv_supervisor_image_end
wv_supervisor_image:
    .incbin "wovyr-supervisor"
wv_supervisor_image_end:
    .byte 0

    .section .note.GNU-stack, "", %progbits
