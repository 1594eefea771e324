/* msg.h - messages as structs, and the tables that describe them
 *
 * Decoded strings point into the frame: they live until the buffer moves on, and are not
 * NUL-terminated. Decoding checks every length; nothing is allocated.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_WIRE_MSG_H
#define WV_WIRE_MSG_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/frame.h"
#include "wire/msg.def"

#define WV_PROTOCOL_VERSION 1u

struct wv_str {
    const char *ptr;
    uint32_t len;
};

/* A packed list: count times (u32 length, bytes). Walk it with wv_strv_next. */
struct wv_strv {
    const char *ptr;
    uint32_t len, count;
};

enum wv_type {
    WV_MSG_NONE = 0,
#define M(NAME, number, from, on, phase, next, flags) WV_MSG_##NAME = (number),
    WV_MESSAGES(M)
#undef M
};

#define WV_TYPE_U8 uint8_t
#define WV_TYPE_U32 uint32_t
#define WV_TYPE_U64 uint64_t
#define WV_TYPE_STR struct wv_str
#define WV_TYPE_STRV struct wv_strv
#define WV_TYPE_TAIL struct wv_str
#define WV_DECLARE(S, kind, field, max) WV_TYPE_##kind field;

/* struct wv_msg_START { uint32_t flags; struct wv_strv argv; ... }; one per message.
 * The leading byte gives messages without fields a size; it is never sent. */
#define M(NAME, number, from, on, phase, next, flags)                                  \
    struct wv_msg_##NAME {                                                             \
        uint8_t unused_;                                                               \
        WV_FIELDS_##NAME(WV_DECLARE, NAME)                                                 \
    };
WV_MESSAGES(M)
#undef M

union wv_msg {
#define M(NAME, number, from, on, phase, next, flags) struct wv_msg_##NAME NAME;
    WV_MESSAGES(M)
#undef M
};

enum wv_kind { WV_U8, WV_U32, WV_U64, WV_STR, WV_STRV, WV_TAIL };

struct wv_field {
    const char *name;
    uint8_t kind;    /* enum wv_kind */
    uint16_t offset; /* in the message's struct */
    uint32_t max;
};

enum wv_from { WV_FROM_H = 1, WV_FROM_G = 2, WV_FROM_C = 4, WV_FROM_S = 8 };
enum wv_phase { WV_GONE = 0, WV_WAIT = 1, WV_LIVE = 2, WV_BOTH = 3, WV_SAME = 4 };
enum wv_flag { WV_DATA = 1, WV_FD = 2, WV_LATE = 4 };

/* Bits of `on`. An opener is the bit of its number modulo 64: the two protocols never
 * meet on one connection, so their openers may share bits. */
#define WV_ON_CONN (1ull << 63)
#define WV_ON_SELF (1ull << 62)
#define WV_ON_ANY (1ull << 61)
#define WV_ON_OPENER(number) (1ull << ((number) & 63u))

struct wv_msg_def {
    const char *name;
    const struct wv_field *fields;
    uint64_t on;
    uint16_t size; /* of the struct */
    uint8_t nfields;
    uint8_t type;
    uint8_t from, phase, next, flags;
};

/* NULL for a number that is not a message. */
const struct wv_msg_def *wv_msg_def(uint8_t type);
const struct wv_msg_def *wv_msg_named(const char *name);

/* Bytes that msg needs on the wire, or WV_EINVALID with the field that is too long. */
long wv_msg_size(uint8_t type, const void *msg, struct wv_err *err);

/* Write msg (a struct wv_msg_*) to out, which has wv_msg_size bytes. */
void wv_msg_put(uint8_t type, const void *msg, uint8_t *out);

/* Read a whole payload into msg; WV_EPROTOCOL for anything that does not fit exactly. */
int wv_msg_get(uint8_t type, const uint8_t *data, size_t len, union wv_msg *msg,
               struct wv_err *err);

/* 1 and the next string, or 0 at the end. Decoded lists are already checked. */
int wv_strv_next(struct wv_strv *list, struct wv_str *item);

/* A packed list made of n strings, into out (room bytes); returns its length or WV_ELIMIT. */
long wv_strv_pack(uint8_t *out, size_t room, const struct wv_str *items, size_t n);

struct wv_str wv_str(const char *text);

/* Copy to a NUL-terminated buffer: 0, or WV_EINVALID when it is too long or has a NUL. */
int wv_str_copy(struct wv_str s, char *out, size_t room);

/* --- values inside fields ------------------------------------------------------- */

/* A limit that is asked for, but whose absence is no reason to refuse the session. */
enum wv_open_flag {
    WV_OPEN_BEST_MEMORY = 1,
    WV_OPEN_BEST_CPUS = 2,
    WV_OPEN_BEST_PIDS = 4,
    WV_OPEN_BEST_DISK = 8,
};

enum wv_start_flag {
    WV_START_FOLLOW = 1,    /* send the output on this stream, lossless (exec) */
    WV_START_MERGE = 2,     /* stderr goes where stdout goes */
    WV_START_STDIN = 4,     /* STDIN will come; otherwise /dev/null */
    WV_START_PTY = 8,       /* a terminal of cols x rows */
    WV_START_KILL_OUTPUT = 16, /* more output than `output` kills, instead of counting */
    WV_START_OWNED = 32,    /* the tree dies when this stream's connection goes or CANCEL */
    WV_START_UMASK = 64,    /* umask is given */
};

enum wv_source { WV_SOURCE_STDOUT = 1, WV_SOURCE_STDERR = 2, WV_SOURCE_PTY = 3 };

enum wv_cause {
    WV_CAUSE_EXITED = 1,
    WV_CAUSE_SIGNALED,
    WV_CAUSE_TIMEOUT,
    WV_CAUSE_OUTPUT,
    WV_CAUSE_KILLED,
};

enum wv_reason {
    WV_REASON_NONE,
    WV_REASON_WALL,
    WV_REASON_CPU_TIME,
    WV_REASON_OWNER,
    WV_REASON_IDLE_TTL,
    WV_REASON_LIFETIME,
    WV_REASON_POLICY,
    WV_REASON_SHUTDOWN,
    WV_REASON_GUEST,
    WV_REASON_MEMORY,
    WV_REASON_FORK,
};

enum wv_state {
    WV_STATE_OPENING = 1,
    WV_STATE_RUNNING,
    WV_STATE_PAUSED,
    WV_STATE_CLOSING,
    WV_STATE_CLOSED,
    WV_STATE_LOST,
};

enum wv_to { WV_TO_GROUP = 1, WV_TO_LEADER, WV_TO_TREE };

enum wv_limit_hit {
    WV_HIT_OUTPUT = 1,
    WV_HIT_TIMEOUT = 2,
    WV_HIT_CPU_TIME = 4,
    WV_HIT_DISK = 8, /* no free block or inode was left at the end */
};

enum wv_file_type {
    WV_FILE_REGULAR = 1,
    WV_FILE_DIRECTORY,
    WV_FILE_SYMLINK,
    WV_FILE_FIFO,
    WV_FILE_SOCKET,
    WV_FILE_CHAR,
    WV_FILE_BLOCK,
};

enum wv_put_flag {
    WV_PUT_ATOMIC = 1,     /* temporary file, then rename */
    WV_PUT_APPEND = 2,
    WV_PUT_PARENTS = 4,    /* make missing directories */
    WV_PUT_IF_VERSION = 8, /* version is given */
    WV_PUT_MODE = 16,      /* mode is given */
    WV_PUT_SYNC = 32,      /* fsync before it appears */
};

#endif
