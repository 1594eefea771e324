/* test_peer.c - peers and hubs over real sockets
 *
 * SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "client/peer.h"
#include "test.h"

/* The agent's side: a chan and a socket. */
struct agent {
    struct wv_chan chan;
    int sock;
};

static void open_pair(struct wv_peer *peer, struct agent *agent)
{
    struct wv_msg_HELLO hello = {.version = WV_PROTOCOL_VERSION};
    struct wv_err err;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        abort();
    *peer = (struct wv_peer){.fd = -1};
    if (wv_peer_init(peer, WV_HOST, &err) < 0 || wv_peer_hello(peer, -1, &err) < 0)
        abort();
    peer->fd = pair[0];
    wv_chan_init(&agent->chan, WV_GUEST);
    agent->sock = pair[1];
    wv_chan_send(&agent->chan, 0, WV_MSG_HELLO, &hello, -1, NULL);
}

static void close_agent(struct agent *agent)
{
    wv_chan_fini(&agent->chan);
    wv_fd_drop(&agent->sock);
}

/* Read, take everything, write. */
static int agent_turn(struct agent *agent)
{
    struct wv_event event;
    struct wv_err err;
    int n = 0;

    wv_chan_read(&agent->chan, agent->sock, &err);
    while (wv_chan_next(&agent->chan, &event, &err) > 0)
        n++;
    wv_chan_write(&agent->chan, agent->sock, &err);
    return n;
}

static void test_flood(void)
{
    static char data[60000];
    struct wv_peer peer;
    struct agent agent;
    struct wv_hub hub = {.fd = -1};
    struct wv_keep keep;
    struct wv_err err;
    struct wv_msg_START start = {0};
    struct wv_msg_STARTED started = {.id = 1};
    struct wv_msg_OUTPUT output = {.source = WV_SOURCE_STDOUT};
    struct wv_msg_EXIT ended = {.cause = WV_CAUSE_EXITED};
    uint64_t sent = 0, events = 0;
    long id;

    open_pair(&peer, &agent);
    CHECK(wv_hub_open(&hub, &err) == 0 && wv_hub_add(&hub, &peer, &err) == 0, "a hub");
    id = wv_chan_open(peer.chan, WV_MSG_START, &start, -1, NULL, &err);
    wv_peer_flush(&peer);
    agent_turn(&agent);
    wv_keep_init(&keep, 1 << 20);
    CHECK(wv_peer_collect(&peer, (uint32_t)id, &keep) == 0, "a collected stream");
    wv_chan_send(&agent.chan, (uint32_t)id, WV_MSG_STARTED, &started, -1, &err);
    while (sent < (64u << 20)) {
        output.offset = sent;
        output.data = (struct wv_str){data, sizeof data};
        while (wv_chan_send(&agent.chan, (uint32_t)id, WV_MSG_OUTPUT, &output, -1,
                            &err) == 0)
            output.offset = sent += sizeof data;
        agent_turn(&agent);
        wv_hub_wait(&hub, 0, &err);
        while (wv_peer_peek(&peer) > 0) {
            events++;
            wv_peer_took(&peer);
        }
    }
    for (int i = 0; i < 20; i++) {
        agent_turn(&agent);
        wv_hub_wait(&hub, 0, &err);
    }
    CHECK(events == 2, "only HELLO and STARTED were events");
    CHECK(keep.total == sent && keep.gap == 0, "everything arrived");
    CHECK(hub.ready == 0 && wv_peer_peek(&peer) == 0, "nothing is left");

    wv_chan_send(&agent.chan, (uint32_t)id, WV_MSG_OUTPUT,
                 &(struct wv_msg_OUTPUT){
                     .source = 1, .offset = sent, .data = {"x", 1}
    },
                 -1, &err);
    wv_chan_send(&agent.chan, (uint32_t)id, WV_MSG_EXIT, &ended, -1, &err);
    wv_chan_write(&agent.chan, agent.sock, &err);
    close_agent(&agent);
    CHECK(wv_hub_wait(&hub, 1000, &err) == 1, "a last word");
    wv_hub_wait(&hub, 1000, &err);
    CHECK(wv_peer_peek(&peer) == 1 && peer.event.type == WV_MSG_EXIT &&
              peer.event.closed && peer.event.user == &keep && keep.total == sent + 1,
          "is heard though its speaker is gone");
    wv_peer_took(&peer);
    wv_hub_wait(&hub, 1000, &err);
    CHECK(wv_peer_peek(&peer) == WV_ELOST && hub.ready == 0, "then the loss is told");
    CHECK(wv_hub_wait(&hub, 10, &err) == 0, "and the hub is quiet");
    wv_peer_close(&peer);
    wv_peer_close(&peer);
    CHECK(hub.first == NULL, "a closed peer has left the hub");
    wv_keep_fini(&keep);
    wv_hub_close(&hub);
    wv_hub_close(&hub);
}

/* Many tiny frames: a turn ends, and the rest is not forgotten. */
static void test_turns(void)
{
    struct wv_peer peer;
    struct agent agent;
    struct wv_hub hub = {.fd = -1};
    struct wv_keep keep;
    struct wv_err err;
    struct wv_msg_START start = {0};
    struct wv_msg_OUTPUT output = {
        .source = WV_SOURCE_STDERR, .data = {"y", 1}
    };
    long id;
    int turns = 0;

    open_pair(&peer, &agent);
    wv_hub_open(&hub, &err);
    wv_hub_add(&hub, &peer, &err);
    id = wv_chan_open(peer.chan, WV_MSG_START, &start, -1, NULL, &err);
    wv_peer_flush(&peer);
    agent_turn(&agent);
    wv_keep_init(&keep, 4096);
    wv_peer_collect(&peer, (uint32_t)id, &keep);
    for (int i = 0; i < 2000; i++, output.offset++)
        wv_chan_send(&agent.chan, (uint32_t)id, WV_MSG_OUTPUT, &output, -1, &err);
    agent_turn(&agent);
    wv_hub_wait(&hub, 1000, &err);
    if (wv_peer_peek(&peer) == 1)
        wv_peer_took(&peer); /* HELLO */
    while (wv_hub_wait(&hub, 0, &err) > 0 && turns < 100)
        turns++;
    CHECK(turns >= 4 && turns < 20, "turns of at most so many frames");
    CHECK(keep.total == 2000, "all of them in the end");
    wv_peer_close(&peer);
    close_agent(&agent);
    wv_keep_fini(&keep);
    wv_hub_close(&hub);
}

static void test_rules(void)
{
    struct wv_peer peer;
    struct agent agent;
    struct wv_msg_HELLO hello = {.version = 99};

    open_pair(&peer, &agent);
    agent_turn(&agent);
    wv_chan_send(&agent.chan, 0, WV_MSG_HELLO, &hello, -1, NULL);
    agent_turn(&agent);
    wv_peer_pump(&peer);
    CHECK(wv_peer_peek(&peer) == 1, "a right HELLO");
    wv_peer_took(&peer);
    CHECK(wv_peer_peek(&peer) == WV_EPROTOCOL, "a wrong one");
    wv_peer_close(&peer);
    close_agent(&agent);

    open_pair(&peer, &agent);
    if (write(agent.sock, "\0\0\0\x7f\0\0\0\0", 8) != 8)
        abort();
    wv_peer_pump(&peer);
    CHECK(wv_peer_peek(&peer) == WV_EPROTOCOL && wv_peer_wants(&peer) == 0,
          "not a message");
    CHECK(wv_peer_peek(&peer) == WV_EPROTOCOL, "stays so");
    wv_peer_close(&peer);
    close_agent(&agent);
}

/* A full socket is waited for, and a peer that is gone raises no SIGPIPE. */
static void test_writing(void)
{
    static char data[50000];
    struct wv_peer peer;
    struct agent agent;
    struct wv_hub hub = {.fd = -1};
    struct wv_err err;
    struct wv_msg_START start = {0};
    struct wv_msg_STDIN in = {
        .data = {data, sizeof data}
    };
    uint32_t ids[8];
    int sent = 0;

    open_pair(&peer, &agent);
    wv_hub_open(&hub, &err);
    wv_hub_add(&hub, &peer, &err);
    for (int i = 0; i < 8; i++)
        ids[i] =
            (uint32_t)wv_chan_open(peer.chan, WV_MSG_START, &start, -1, NULL, &err);
    for (int i = 0; i < 8; i++)
        while (wv_chan_send(peer.chan, ids[i], WV_MSG_STDIN, &in, -1, &err) == 0) {
            wv_peer_flush(&peer);
            sent++;
        }
    CHECK((peer.watched & EPOLLOUT) != 0, "what the socket did not take is waited for");
    for (int i = 0; i < 100 && (peer.watched & EPOLLOUT) != 0; i++) {
        sent -= agent_turn(&agent);
        wv_hub_wait(&hub, 100, &err);
    }
    CHECK((peer.watched & EPOLLOUT) == 0, "and goes");
    sent -= agent_turn(&agent);
    CHECK(sent == -9, "all of it"); /* HELLO and eight STARTs were not counted */
    close_agent(&agent);
    wv_chan_send(peer.chan, 0, WV_MSG_PING, &(struct wv_msg_PING){.token = 1}, -1,
                 &err);
    wv_peer_flush(&peer);
    CHECK(peer.mute == 1, "no SIGPIPE");
    wv_hub_wait(&hub, 100, &err);
    wv_hub_close(&hub);
    CHECK(peer.hub == NULL, "a closed hub lets go");
    wv_peer_close(&peer);
}

static void test_copy(void)
{
    struct wv_peer peer, other;
    struct agent agent, another;
    struct wv_hub hub = {.fd = -1};
    struct wv_err err;
    int status = -1;
    pid_t pid;

    open_pair(&peer, &agent);
    open_pair(&other, &another);
    wv_hub_open(&hub, &err);
    wv_hub_add(&hub, &peer, &err);
    wv_hub_add(&hub, &other, &err);
    wv_peer_flush(&peer);
    pid = fork();
    if (pid == 0) {
        int good = !wv_peer_ours(&peer) && !wv_hub_ours(&hub);

        wv_chan_send(peer.chan, 0, WV_MSG_PING, &(struct wv_msg_PING){.token = 1}, -1,
                     &err);
        wv_peer_close(&peer);
        wv_hub_close(&hub);
        good &= other.hub == NULL;
        wv_peer_close(&other);
        close_agent(&agent);
        close_agent(&another);
        _exit(good ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    CHECK(status == 0, "a copy is closed");
    CHECK(agent_turn(&agent) == 1, "and has sent nothing");
    agent_turn(&another);
    CHECK(wv_hub_wait(&hub, 1000, &err) == 2, "the hub of the original still works");
    wv_peer_close(&peer);
    wv_peer_close(&other);
    close_agent(&agent);
    close_agent(&another);
    wv_hub_close(&hub);
}

int main(void)
{
    test_flood();
    test_turns();
    test_rules();
    test_writing();
    test_copy();
    TEST_END();
}
