/* client_ask.c - requests of a client that the janitor answers
 *
 * Kept as jobs until then, and found again by their ticket.
 *
 * SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/client.h"
#include "supervisor/launchers.h"
#include "supervisor/session.h"

void wv_client_ask(struct wv_client *client, uint32_t stream, uint8_t type,
                   struct wv_role_request *req, size_t n)
{
    struct wv_err err = {0};
    struct wv_client_job *job = NULL;
    int rc = 0;

    for (size_t i = 0; i < WV_CLIENT_JOBS && job == NULL; i++)
        if (client->jobs[i].ticket == 0)
            job = &client->jobs[i];
    if (job == NULL)
        rc = wv_fail(&err, WV_ECAPACITY, "supervisor",
                     "%d requests wait for the janitor", WV_CLIENT_JOBS);
    req->head.ticket = wv_ticket(client->super);
    if (rc == 0)
        rc = wv_ask_janitor(client->super, req, n, &err);
    if (rc < 0)
        wv_client_error(client, stream, &err);
    else
        *job = (struct wv_client_job){
            .ticket = req->head.ticket, .stream = stream, .type = type};
}

void wv_client_ask_usage(struct wv_client *client, const struct wv_event *event)
{
    struct wv_role_request req = {.head.type = WV_ROLE_USAGE};
    struct wv_session *session = wv_session_find(client, event->msg.USAGE.id);
    struct wv_err err = {0};

    if (session == NULL || session->number == 0) {
        wv_fail(&err, WV_ENOT_FOUND, "usage", "no such session");
        wv_client_error(client, event->stream, &err);
        return;
    }
    req.head.number = session->number;
    wv_client_ask(client, event->stream, event->type, &req, 0);
}

static int copy(char *to, size_t room, struct wv_str from, const char *field,
                struct wv_err *err)
{
    if (wv_str_copy(from, to, room) == 0)
        return 0;
    wv_fail(err, WV_EINVALID, "template", "%s is too long or has a zero byte", field);
    snprintf(err->field, sizeof err->field, "%s", field);
    return WV_EINVALID;
}

void wv_client_ask_catalog(struct wv_client *client, const struct wv_event *event)
{
    struct wv_role_request req = {
        .head.type = event->type == WV_MSG_BUILD ? WV_ROLE_BUILD : WV_ROLE_FORGET};
    const struct wv_msg_BUILD *build = &event->msg.BUILD;
    struct wv_str name =
        event->type == WV_MSG_BUILD ? build->name : event->msg.FORGET.name;
    char kind[17];
    struct wv_err err = {0};
    int rc = copy(req.u.template.name, sizeof req.u.template.name, name, "name", &err);

    if (rc == 0 && (!wv_catalog_is_name(req.u.template.name) ||
                    strcmp(req.u.template.name, WV_HOST_TEMPLATE) == 0))
        rc = wv_fail(&err, WV_EINVALID, "template", "%s cannot be a template's name",
                     req.u.template.name);
    if (rc == 0 && event->type == WV_MSG_BUILD)
        rc = copy(req.u.template.source, sizeof req.u.template.source, build->source,
                  "source", &err);
    if (rc == 0 && event->type == WV_MSG_BUILD)
        rc = copy(kind, sizeof kind, build->kind, "kind", &err);
    if (rc == 0 && event->type == WV_MSG_BUILD) {
        req.u.template.kind = strcmp(kind, "tar") == 0;
        if (strcmp(kind, "tar") != 0 && strcmp(kind, "tree") != 0)
            rc = wv_fail(&err, WV_EINVALID, "template",
                         "kind is \"tree\" or \"tar\", not \"%s\"", kind);
    }
    if (rc == 0 && event->type == WV_MSG_FORGET)
        rc = wv_launcher_retire(client->super, req.u.template.name, &err);
    if (rc < 0)
        wv_client_error(client, event->stream, &err);
    else
        wv_client_ask(client, event->stream, event->type, &req, sizeof req.u.template);
}

static void answer(struct wv_client *client, struct wv_client_job *job,
                   const struct wv_role_request *in)
{
    const struct wv_usage *usage = &in->u.usage;

    if (in->head.type == WV_ROLE_TEMPLATES) {
        struct wv_msg_TEMPLATE msg = {.name = wv_str(in->u.template.name),
                                      .built_ms = in->head.flag * 1000ull};

        wv_client_send(client, job->stream, WV_MSG_TEMPLATE, &msg);
        return;
    }
    job->ticket = 0;
    if (in->head.err.code < 0) {
        wv_client_error(client, job->stream, &in->head.err);
    } else if (in->head.type == WV_ROLE_USED) {
        struct wv_msg_USED msg = {
            .cpu_us = usage->cpu_us,
            .memory = usage->memory,
            .memory_peak = usage->memory_peak,
            .pids = usage->pids,
            .oom_kills = usage->oom_kills,
            .pids_hits = usage->pids_hits,
            .throttled_us = usage->throttled_us,
            .memory_hits = usage->memory_hits,
        };

        wv_client_send(client, job->stream, WV_MSG_USED, &msg);
    } else if (job->type == WV_MSG_TEMPLATES) {
        struct wv_msg_END end = {0};

        wv_client_send(client, job->stream, WV_MSG_END, &end);
    } else {
        struct wv_msg_OK ok = {0};

        wv_client_send(client, job->stream, WV_MSG_OK, &ok);
    }
}

int wv_clients_answer(struct wv_supervisor *super, const struct wv_role_request *in)
{
    for (struct wv_client *c = super->clients; c != NULL; c = c->next)
        for (size_t i = 0; i < WV_CLIENT_JOBS; i++)
            if (c->jobs[i].ticket == in->head.ticket && in->head.ticket != 0) {
                if (!c->dead)
                    answer(c, &c->jobs[i], in);
                return 1;
            }
    return 0;
}

void wv_clients_janitor_died(struct wv_supervisor *super)
{
    struct wv_role_request in = {.head.type = WV_ROLE_DONE};

    wv_fail(&in.head.err, WV_EUNAVAILABLE, "supervisor", "the janitor has ended");
    for (struct wv_client *c = super->clients; c != NULL; c = c->next)
        for (size_t i = 0; i < WV_CLIENT_JOBS; i++)
            if (c->jobs[i].ticket != 0 && !c->dead)
                answer(c, &c->jobs[i], &in);
}
