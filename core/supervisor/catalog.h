/* catalog.h - the catalog of unpacked templates: /var/lib/wovyr/t/<name>/root
 *
 * Written by root only, through the janitor. A template appears by rename, whole or not
 * at all. What cannot be seen by this name does not exist.
 *
 * SPDX-License-Identifier: MIT */
#ifndef WV_SUPERVISOR_CATALOG_H
#define WV_SUPERVISOR_CATALOG_H

#include <stdint.h>

#include "base/err.h"

#define WV_CATALOG "/var/lib/wovyr/t"
#define WV_TEMPLATE_NAME_MAX 64

/* 1 when name may be a template's: letters, digits, ".", "_", "-", not leading with "."
 * and never a path. */
int wv_catalog_is_name(const char *name);

/* Unpack a directory ("tree") or an archive ("tar") under name. Takes long: to be run
 * in a child of its own, which it confines on the way. */
int wv_catalog_build(const char *name, const char *kind, const char *source,
                     struct wv_err *err);

/* Remove a template. Takes long too. */
int wv_catalog_forget(const char *name, struct wv_err *err);

/* Call each for every template; built: seconds since 1970. */
int wv_catalog_list(void (*each)(void *user, const char *name, uint32_t built),
                    void *user, struct wv_err *err);

#endif
