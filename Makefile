# Makefile - the guest agent, the supervisor that carries it, the Lua module that carries both.
# CFLAGS, CPPFLAGS and LDFLAGS belong to the user; what wovyr needs is in ALL_CFLAGS.
# `make help` lists the targets; V=1 shows the commands; WERROR=1 SAN=1 VM=luajit BUILD=dir.
# SPDX-License-Identifier: MIT

HOSTCC ?= $(CC)
CFLAGS ?= -O2 -g
STATIC_OPT ?= -Os
STATIC_LDFLAGS ?= -s
VM ?= $(if $(wildcard $(LUA_INCDIR)/luajit.h),luajit,lua5.4)
BUILD ?= build
PREFIX ?= /usr/local
T ?= 20
say = $(if $(V),,@echo "  $(1)	$(patsubst $(BUILD)/%,%,$@)";)

TRIPLET := $(shell $(CC) -dumpmachine)
ARCH := $(firstword $(subst -, ,$(TRIPLET)))
CLANG := $(findstring clang,$(shell $(CC) --version))
MUSL := $(shell command -v musl-gcc)
ABI := $(if $(filter luajit,$(VM)),5.1,5.4)
LUA_CFLAGS := $(if $(LUA_INCDIR),-isystem $(LUA_INCDIR),$(patsubst -I%,-isystem %,\
  $(shell pkg-config --cflags $(VM) 2>/dev/null)))

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
  -Wold-style-definition -Wpointer-arith -Wcast-qual -Wwrite-strings -Wundef -Wformat=2 -Wvla \
  -Walloca -Wnull-dereference -Wdouble-promotion -Wconversion -Wno-sign-conversion \
  -Wimplicit-fallthrough -Wswitch-enum $(if $(CLANG),,-Wlogical-op -Wduplicated-cond \
  -Wduplicated-branches -Wjump-misses-init -Wcast-align=strict -Wstringop-overflow=4) \
  $(if $(filter 1,$(WERROR)),-Werror)
HARDEN := -fstack-protector-strong -fstack-clash-protection -fno-common -fvisibility=hidden \
  $(if $(filter x86_64,$(ARCH)),-fcf-protection=full) $(if $(CLANG),,-ftrivial-auto-var-init=zero)
FORTIFY := -D_FORTIFY_SOURCE=3
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
TRAP := -fsanitize=undefined -fsanitize-undefined-trap-on-error
LINK := -Wl,-z,relro,-z,now,-z,noexecstack
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -Icore -I. -I$(BUILD)/gen $(WARN) $(HARDEN) -MMD -MP \
  $(CPPFLAGS) $(CFLAGS)
# musl sees the kernel's headers only by -idirafter; without musl-gcc, the C library's own -static
STATIC_CC := $(if $(MUSL),$(MUSL),$(CC))
STATIC_CFLAGS = $(ALL_CFLAGS) $(STATIC_OPT) -fno-pic -fno-pie -ffunction-sections -fdata-sections \
  $(if $(MUSL),-idirafter /usr/include -idirafter /usr/include/$(TRIPLET)) $(if $(SAN),$(TRAP),$(FORTIFY))
MODULE_CFLAGS = $(ALL_CFLAGS) -fPIC -DWV_SUPERVISOR_PATH='"$(LIBEXECDIR)/wovyr/supervisor"' \
  $(LUA_CFLAGS) $(if $(SAN),$(SANITIZE),$(FORTIFY))

SHARED := $(wildcard core/base/*.c core/wire/*.c core/channel/*.c)
AGENT := $(wildcard guest/*.c) $(SHARED)
SUPERVISOR := $(wildcard core/supervisor/*.[cS] core/isolation/*.c core/backend/*.c) $(SHARED)
MODULE := $(wildcard core/client/*.[cS] core/lua/*.c) $(SHARED)
TESTABLE := $(filter %.c,$(filter-out %/main.c core/lua/%,$(sort $(AGENT) $(SUPERVISOR) $(MODULE))))
GENERATOR := $(wildcard core/isolation/gen/seccomp_gen.c)
GEN := $(BUILD)/gen/build_id.h $(if $(GENERATOR),$(BUILD)/gen/seccomp_filter.h)
UNITS := $(patsubst spec/c/%.c,$(BUILD)/unit/%,$(wildcard spec/c/test_*.c))
FUZZERS := $(patsubst spec/c/%.c,$(BUILD)/fuzz/%,$(wildcard spec/c/fuzz_*.c))
objects = $(addprefix $(BUILD)/obj/$(1)/,$(addsuffix .o,$(basename $(2))))
STATIC := $(BUILD)/static
CORE := $(BUILD)/$(VM)/wovyr/core.so

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all help deps demo check check-unit check-sandbox check-c check-v2 bench soak lint tidy \
  format fuzz san install install-lua clean env FORCE

all: $(BUILD)/$(VM)/.lua $(CORE) ## everything for VM (lua5.4 or luajit)

define flavour # name, compiler: one directory of objects each
$(BUILD)/obj/$(1)/%.o: %.c | $(GEN)
	@mkdir -p $$(@D)
	$$(call say,CC)$(2) -c -o $$@ $$<
$(BUILD)/obj/$(1)/%.o: %.S
	@mkdir -p $$(@D)
	$$(call say,AS)$$(CC) $(filter -fcf%,$(HARDEN)) -Wa,-I,$(STATIC) -c -o $$@ $$<
endef
$(eval $(call flavour,static,$$(STATIC_CC) $$(STATIC_CFLAGS)))
$(eval $(call flavour,$(VM),$$(CC) $$(MODULE_CFLAGS)))
$(eval $(call flavour,unit,$$(CC) $$(ALL_CFLAGS) $$(SANITIZE)))
$(eval $(call flavour,fuzz,clang $$(filter-out -ftrivial% -W%,$$(ALL_CFLAGS)) $$(SANITIZE) \
  -fsanitize=fuzzer-no-link))
$(BUILD)/obj/static/core/supervisor/agent.o: $(STATIC)/wovyr-agent
$(BUILD)/obj/$(VM)/core/client/embed.o: $(STATIC)/wovyr-supervisor

$(STATIC)/wovyr-agent: $(call objects,static,$(AGENT))
$(STATIC)/wovyr-supervisor: $(call objects,static,$(SUPERVISOR))
$(STATIC)/wovyr-%:
	@mkdir -p $(@D)
	$(if $(MUSL),,@echo "note: no musl-gcc (Debian: musl-tools), so $(@F) is linked by $(CC) -static:" \
	  "it works, ten times the size and a little slower to start")
	$(call say,LD)$(STATIC_CC) $(CFLAGS) -static -no-pie -Wl,--gc-sections $(LINK) $(STATIC_LDFLAGS) -o $@ $^
	@! readelf -lW $@ | grep INTERP || { echo "error: $@ is not static" >&2; rm -f $@; exit 1; }
$(CORE): $(call objects,$(VM),$(MODULE))
	@mkdir -p $(@D)
	$(call say,LD)$(CC) $(CFLAGS) -shared $(if $(SAN),$(SANITIZE)) $(LINK) $(LDFLAGS) -o $@ $^
	@! nm -u $@ | grep ' wv_' || { echo "error: $@ lacks these" >&2; rm -f $@; exit 1; }
$(call objects,$(VM),$(MODULE)): $(BUILD)/$(VM)/.lua
$(BUILD)/$(VM)/.lua: FORCE
	@CC='$(CC)' VM='$(VM)' LUA_CFLAGS='$(LUA_CFLAGS)' sh scripts/check-lua.sh
	@mkdir -p $(@D); echo '$(LUA_CFLAGS)' | cmp -s - $@ || echo '$(LUA_CFLAGS)' > $@

$(BUILD)/gen/build_id.h: FORCE # the same for module and supervisor of one tree
	@mkdir -p $(@D)
	@find core guest -name '*.[chS]' -o -name '*.def' | LC_ALL=C sort | xargs sha256sum | sha256sum \
	  | sed 's/^\(.\{32\}\).*/#define WV_BUILD "\1"/' > $@.new
	@cmp -s $@.new $@ && rm -f $@.new || mv $@.new $@
$(BUILD)/gen/seccomp_gen: $(GENERATOR)
	@mkdir -p $(@D)
	@echo '#include <seccomp.h>' | $(HOSTCC) -E - >/dev/null 2>&1 || { echo "error: libseccomp's" \
	  "headers are missing. Debian: apt-get install libseccomp-dev, or make deps" >&2; exit 1; }
	$(call say,GEN)$(HOSTCC) -std=gnu11 -D_GNU_SOURCE -Icore -I. $(WARN) -MMD -MP -O1 -o $@ $< -lseccomp
$(BUILD)/gen/seccomp_filter.h: $(BUILD)/gen/seccomp_gen
	$(call say,GEN)$< $(ARCH) > $@

$(BUILD)/unit/lib.a: $(call objects,unit,$(TESTABLE))
$(BUILD)/fuzz/lib.a: $(call objects,fuzz,$(TESTABLE))
%/lib.a:
	@mkdir -p $(@D) && rm -f $@ && ar rcs $@ $^
$(BUILD)/unit/%: $(BUILD)/obj/unit/spec/c/%.o $(BUILD)/unit/lib.a
	$(call say,LD)$(CC) $(CFLAGS) $(SANITIZE) -o $@ $^
$(BUILD)/fuzz/%: $(BUILD)/obj/fuzz/spec/c/%.o $(BUILD)/fuzz/lib.a
	$(call say,LD)clang $(CFLAGS) $(SANITIZE) -fsanitize=fuzzer -o $@ $^

check: deps ## lint, C units, fuzz, the specs under both VMs, as root and as a user
	@scripts/check.sh
check-unit check-sandbox: all ## one part of the specs under VM, as the present user
	@scripts/spec.sh $(VM) $(@:check-%=%)
check-c: $(UNITS) ## the C units under ASan and UBSan
	@scripts/units.sh $(UNITS)
fuzz: $(FUZZERS) ## every fuzz target for T seconds
	@T=$(T) scripts/fuzz.sh $(FUZZERS)
lint tidy format san deps: ## style; deep analysis; clang-format; specs under ASan; Debian packages
	@scripts/$@.sh
check-v2 soak: all ## limits under cgroup v2 in QEMU; hours of use
	@scripts/$@.sh
demo: deps ## the tour: real work in a real sandbox
	@$(MAKE) --no-print-directory all && eval "$$($(MAKE) -s env)" && exec $(VM) examples/demo.lua
$(BUILD)/bench/peer: bench/peer.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CFLAGS) -o $@ $<
bench: all $(BUILD)/bench/peer ## each target of the design beside its peer
	@eval "$$($(MAKE) -s env)" && exec $(VM) bench/run.lua $(ARGS)
env: ## eval "$(make -s env)" sets the Lua paths for the tree as built
	@echo "export LUA_PATH='$(CURDIR)/lua/?.lua;$(CURDIR)/lua/?/init.lua;;'"
	@echo "export LUA_CPATH='$(abspath $(BUILD))/$(VM)/?.so;;'"

LIBEXECDIR ?= /usr/libexec
LUADIR ?= $(PREFIX)/share/lua/$(ABI)
LIBDIR ?= $(if $(filter /usr,$(PREFIX)),/usr/lib/$(TRIPLET),$(PREFIX)/lib)/lua/$(ABI)
install: install-lua ## PREFIX, DESTDIR, VM
	install -D -m 755 $(STATIC)/wovyr-supervisor '$(DESTDIR)$(LIBEXECDIR)/wovyr/supervisor'
	$(foreach f,$(wildcard bin/*),install -D -m 755 $f '$(DESTDIR)$(PREFIX)/$f';)
install-lua: all
	cd lua && find . -name '*.lua' -exec install -D -m 644 {} '$(abspath $(DESTDIR)$(LUADIR))/{}' \;
	install -D -m 644 $(CORE) '$(DESTDIR)$(LIBDIR)/wovyr/core.so'
clean: ## remove what was built
	rm -rf $(BUILD)
help:
	@sed -n 's/^\([a-z][a-z0-9 -]*\):.*## \(.*\)/\1 - \2/p' $(MAKEFILE_LIST)

-include $(shell find $(BUILD)/obj $(BUILD)/gen -name '*.d' 2>/dev/null)
