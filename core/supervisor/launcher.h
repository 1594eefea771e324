/* launcher.h - the role that clones sandboxes; PID 1 of the outer pid namespace
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_LAUNCHER_H
#define WV_SUPERVISOR_LAUNCHER_H

/* Runs in a child of the supervisor that was cloned with CLONE_NEWPID (as root), or
 * with CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS (unprivileged; the supervisor writes
 * the id maps). `sock` is its end of a SOCK_SEQPACKET pair. Everything above stderr but
 * `sock` is closed here. It waits for one message of one byte, the sign that the maps
 * stand, then serves until `sock` hangs up. Returns the status to exit with.
 *
 * Requests on `sock`: WV_ROLE_TEMPLATE with one descriptor, the template launcher's end
 * of its own SOCK_SEQPACKET pair. The answer, WV_ROLE_READY with the ticket, comes on
 * that pair, from the template launcher or, if it could not be cloned, from this
 * process.
 *
 * Requests on a template's pair: WV_ROLE_LAUNCH, descriptors in the order of role.h;
 * the lease may be left out. Answers: WV_ROLE_LAUNCHED (or err and no descriptors), and
 * once the session's PID 1 is gone WV_ROLE_REAPED with the status of waitpid and the
 * ticket of the launch. The template launcher waits while the session's child is being
 * set up, so by the time of LAUNCHED the error pipe has already told. Hang-up of a
 * template's pair ends its launcher and all its sandboxes.
 *
 * Requests may be cut after the member of the union that they use; answers are sent
 * as the head alone. */
int wv_launcher_main(int sock, int unprivileged);

#endif
