/* wall.h - the protections that a test build can leave out, one bit each
 *
 * A spec leaves out one and shows that the attack suite notices. Builds for users do not
 * know how (-DWV_TEST).
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_BASE_WALL_H
#define WV_BASE_WALL_H

enum wv_wall {
    WV_WALL_SECCOMP,
    WV_WALL_LANDLOCK,
    WV_WALL_CAPS,
    WV_WALL_MASKS,
    WV_WALL_USERNS,
    WV_WALL_RLIMITS,
    WV_WALL_IMAGE,
};

#endif
