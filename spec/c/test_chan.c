/* test_chan.c - the channel: states, credit, bounds, descriptors
 *
 * SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "channel/chan.h"
#include "test.h"

/* Carry everything that waits in one chan to the other, n bytes at a time. */
static void carry(struct wv_chan *from, struct wv_chan *to, size_t step)
{
    size_t n, room;
    const uint8_t *data;
    int fd;

    while ((data = wv_chan_pending(from, &n, &fd)) != NULL) {
        uint8_t *space = wv_chan_space(to, &room);

        if (space == NULL)
            return;
        if (n > step)
            n = step;
        if (n > room)
            n = room;
        memcpy(space, data, n);
        if (fd >= 0)
            wv_chan_give_fd(to, dup(fd));
        wv_chan_filled(to, n);
        wv_chan_sent(from, n);
        if (step < 64) {
            struct wv_event event;
            struct wv_err err;

            if (wv_chan_next(to, &event, &err) != 0)
                return;
        }
    }
}

static void hello(struct wv_chan *chan)
{
    struct wv_msg_HELLO msg = {.version = WV_PROTOCOL_VERSION};

    wv_chan_send(chan, 0, WV_MSG_HELLO, &msg, -1, NULL);
}

struct pair {
    struct wv_chan host, guest;
    struct wv_event event;
    struct wv_err err;
};

static int recv_guest(struct pair *p)
{
    carry(&p->host, &p->guest, 1 << 20);
    return wv_chan_next(&p->guest, &p->event, &p->err);
}

static int recv_host(struct pair *p)
{
    carry(&p->guest, &p->host, 1 << 20);
    return wv_chan_next(&p->host, &p->event, &p->err);
}

static struct pair *pair_new(void)
{
    struct pair *p = calloc(1, sizeof *p);

    wv_chan_init(&p->host, WV_HOST);
    wv_chan_init(&p->guest, WV_GUEST);
    hello(&p->host);
    hello(&p->guest);
    recv_guest(p);
    recv_host(p);
    return p;
}

static void pair_free(struct pair *p)
{
    wv_chan_fini(&p->host);
    wv_chan_fini(&p->guest);
    free(p);
}

/* Raw bytes at the guest: what does it say? */
static int guest_says(int greet, uint8_t type, uint32_t stream, const void *payload,
                      size_t len)
{
    struct wv_chan guest;
    struct wv_event event;
    struct wv_err err;
    size_t room;
    struct wv_frame frame = {.len = (uint32_t)len, .type = type, .stream = stream};
    uint8_t *space;
    int rc;

    wv_chan_init(&guest, WV_GUEST);
    if (greet) {
        struct wv_chan host;

        wv_chan_init(&host, WV_HOST);
        hello(&host);
        carry(&host, &guest, 1 << 20);
        wv_chan_next(&guest, &event, &err);
        wv_chan_fini(&host);
    }
    space = wv_chan_space(&guest, &room);
    wv_frame_put(space, &frame);
    memcpy(space + WV_FRAME_HEAD, payload, len);
    wv_chan_filled(&guest, WV_FRAME_HEAD + len);
    rc = wv_chan_next(&guest, &event, &err);
    wv_chan_fini(&guest);
    return rc;
}

static void test_rules(void)
{
    uint8_t kill_msg[9] = {1};

    CHECK(guest_says(0, WV_MSG_KILL, 1, kill_msg, 9) == WV_EPROTOCOL, "HELLO comes first");
    CHECK(guest_says(1, WV_MSG_KILL, 1, kill_msg, 9) == 1, "KILL opens a stream");
    CHECK(guest_says(1, WV_MSG_KILL, 0, kill_msg, 9) == WV_EPROTOCOL, "not on stream 0");
    CHECK(guest_says(1, WV_MSG_KILL, 1, kill_msg, 8) == WV_EPROTOCOL, "a short payload");
    CHECK(guest_says(1, WV_MSG_OK, 1, kill_msg, 0) == WV_EPROTOCOL,
          "a host does not say OK");
    CHECK(guest_says(1, WV_MSG_STDIN, 5, kill_msg, 1) == WV_EPROTOCOL,
          "STDIN for a stream that never was");
    CHECK(guest_says(1, 0x7e, 1, kill_msg, 0) == WV_EPROTOCOL, "an unknown type");
    CHECK(guest_says(1, WV_MSG_OPEN, 1, kill_msg, 0) == WV_EPROTOCOL,
          "the other protocol's message");
    CHECK(guest_says(1, WV_MSG_HELLO, 0, kill_msg, 0) == WV_EPROTOCOL, "HELLO comes once");
}

static void test_request(void)
{
    struct pair *p = pair_new();
    struct wv_msg_START start = {.cwd = wv_str("/tmp")};
    struct wv_msg_STARTED started = {.id = 1, .pid = 7};
    struct wv_msg_EXIT over = {.status = 0};
    long id = wv_chan_open(&p->host, WV_MSG_START, &start, -1, p, &p->err);

    CHECK(id == 1 && recv_guest(p) == 1 && p->event.type == WV_MSG_START &&
              p->event.stream == 1 && p->event.msg.START.cwd.len == 4,
          "a request arrives");
    CHECK(wv_chan_send(&p->guest, 1, WV_MSG_EXIT, &over, -1, &p->err) == WV_EINVALID,
          "EXIT does not come before STARTED");
    CHECK(wv_chan_send(&p->guest, 1, WV_MSG_STARTED, &started, -1, &p->err) == 0 &&
              recv_host(p) == 1 && p->event.user == p && !p->event.closed,
          "the answer knows its caller");
    CHECK(wv_chan_send(&p->guest, 1, WV_MSG_STARTED, &started, -1, &p->err) == WV_EINVALID,
          "STARTED comes once");
    CHECK(wv_chan_send(&p->guest, 1, WV_MSG_EXIT, &over, -1, &p->err) == 0 &&
              recv_host(p) == 1 && p->event.closed,
          "EXIT closes the stream");
    {
        struct wv_msg_STDIN data = {.data = wv_str("late")};

        CHECK(wv_chan_send(&p->host, 1, WV_MSG_STDIN, &data, -1, &p->err) == WV_ECLOSED,
              "the host knows that it is gone");
    }
    pair_free(p);
}

static void test_late(void)
{
    struct pair *p = pair_new();
    struct wv_msg_START start = {0};
    struct wv_msg_STDIN data = {.data = wv_str("late")};
    struct wv_msg_ERROR error = {.code = 4};

    wv_chan_open(&p->host, WV_MSG_START, &start, -1, NULL, NULL);
    recv_guest(p);
    wv_chan_send(&p->guest, 1, WV_MSG_ERROR, &error, -1, NULL);
    CHECK(wv_chan_send(&p->host, 1, WV_MSG_STDIN, &data, -1, NULL) == 0 &&
              recv_guest(p) == 0 && !p->guest.dead,
          "what crossed with the end is dropped silently");
    pair_free(p);
}

static void test_credit(void)
{
    struct pair *p = pair_new();
    static char block[WV_FRAME_MAX];
    struct wv_msg_FOLLOW follow = {.id = 1};
    struct wv_msg_OUTPUT out = {.data = {block, 32768}};
    uint32_t sent = 0;

    wv_chan_open(&p->host, WV_MSG_FOLLOW, &follow, -1, NULL, NULL);
    recv_guest(p);
    while (wv_chan_send(&p->guest, 1, WV_MSG_OUTPUT, &out, -1, &p->err) == 0)
        sent += out.data.len;
    CHECK(sent == WV_WINDOW && p->err.code == WV_EAGAIN, "a window, then no more");
    while (recv_host(p) == 1)
        wv_chan_consumed(&p->host, 1, p->event.msg.OUTPUT.data.len);
    CHECK(recv_guest(p) == 1 && p->event.type == WV_MSG_CREDIT, "consuming grants");
    CHECK(wv_chan_may_send(&p->guest, 1) >= WV_WINDOW / 4, "and more may be sent");
    p->guest.streams[1].credit = WV_WINDOW * 4; /* a liar */
    out.data.len = 60000;
    for (int i = 0; i < 5; i++)
        wv_chan_send(&p->guest, 1, WV_MSG_OUTPUT, &out, -1, NULL);
    {
        int rc;

        while ((rc = recv_host(p)) == 1)
            continue;
        CHECK(rc == WV_EPROTOCOL, "more than the credit is a broken rule");
    }
    pair_free(p);
}

static void test_long_message(void)
{
    struct pair *p = pair_new();
    size_t size = 200000;
    uint8_t *list = malloc(size + 4);
    char *text = malloc(size);
    struct wv_msg_START start = {0};
    struct wv_str item = {text, (uint32_t)size}, got;

    memset(text, 'x', size);
    text[size - 1] = 'y';
    start.argv = (struct wv_strv){
        (char *)list, (uint32_t)wv_strv_pack(list, size + 4, &item, 1), 1};
    CHECK(wv_chan_open(&p->host, WV_MSG_START, &start, -1, NULL, &p->err) == 1,
          "200 KB of argv is sent");
    hello(&p->host); /* any second message behind it; breaks a rule, but after it */
    {
        int rc;

        while ((rc = recv_guest(p)) == 0)
            continue;
        CHECK(rc == 1 && wv_strv_next(&p->event.msg.START.argv, &got) &&
                  got.len == size && memcmp(got.ptr, text, size) == 0,
              "and arrives whole");
    }
    start.argv.len = WV_MESSAGE_MAX + 1;
    CHECK(wv_chan_open(&p->host, WV_MSG_START, &start, -1, NULL, &p->err) == WV_EINVALID,
          "a message has a size limit");
    free(list);
    free(text);
    pair_free(p);
}

static void test_streams(void)
{
    struct pair *p = pair_new();
    struct wv_msg_PROCESSES msg = {0};
    long id = 0;

    for (unsigned i = 0; i < WV_STREAMS; i++)
        id = wv_chan_open(&p->host, WV_MSG_PROCESSES, &msg, -1, NULL, NULL);
    CHECK(id == WV_STREAMS, "256 streams at once");
    CHECK(wv_chan_open(&p->host, WV_MSG_PROCESSES, &msg, -1, NULL, &p->err) ==
              WV_ECAPACITY,
          "not one more");
    pair_free(p);
}

static void test_descriptors(void)
{
    struct wv_chan client, super;
    struct wv_msg_HELLO hello_msg = {.version = WV_PROTOCOL_VERSION};
    struct wv_msg_OPEN open_msg = {0};
    struct wv_event event;
    struct wv_err err;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int surplus = 0;

    wv_chan_init(&client, WV_CLIENT);
    wv_chan_init(&super, WV_SUPERVISOR);
    wv_chan_send(&client, 0, WV_MSG_HELLO, &hello_msg, open("/dev/zero", O_RDONLY), NULL);
    wv_chan_open(&client, WV_MSG_OPEN, &open_msg, fd, NULL, NULL);
    carry(&client, &super, 1 << 20);
    CHECK(wv_chan_next(&super, &event, &err) == 1 && event.fd >= 0,
          "a client's HELLO brings its pidfd");
    close(event.fd);
    CHECK(wv_chan_next(&super, &event, &err) == 1 && event.type == WV_MSG_OPEN &&
              event.fd >= 0,
          "a descriptor comes with its message");
    CHECK(fcntl(fd, F_GETFD) < 0, "and the sender's copy is closed");
    close(event.fd);
    while (surplus < 100 && wv_chan_give_fd(&super, open("/dev/null", O_RDONLY)) == 0)
        surplus++;
    CHECK(surplus == WV_FDS_PENDING && super.dead, "a surplus ends the connection");
    wv_chan_fini(&client);
    wv_chan_fini(&super);

    wv_chan_init(&client, WV_HOST);
    CHECK(!wv_chan_wants_fd(&client), "a host takes none that it did not ask for");
    CHECK(wv_chan_give_fd(&client, open("/dev/null", O_RDONLY)) == WV_EPROTOCOL,
          "and calls one a broken rule");
    wv_chan_fini(&client);
}

int main(void)
{
    test_rules();
    test_request();
    test_late();
    test_credit();
    test_long_message();
    test_streams();
    test_descriptors();
    TEST_END();
}
