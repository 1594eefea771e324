/* seccomp_gen.c - build tool: prints the seccomp program of all sandboxes as a C header
 *
 * usage: seccomp_gen x86_64|aarch64
 *
 * What is allowed or refused is in seccomp_calls.h. What is on no list is ENOSYS, so
 * that a program takes its fallback for a call that it may find missing anyway.
 *
 * libseccomp knows the numbers of the calls. The program is not its own: it would be
 * more than twice as long, which every sandbox pays for when the kernel compiles it,
 * and "all but these values, in the low 32 bits", which is what the kernel looks at,
 * cannot be said to it. So numbers are searched in a balanced tree of ranges, after the
 * few calls that are judged by their arguments. The result is run through a small
 * interpreter here against what the lists say; a difference fails the build.
 *
 * SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/gen/seccomp_calls.h"

#define PROGRAM_MAX 1024
#define NUMBERS 1024 /* all architectures stay far below */

struct program {
    struct sock_filter code[PROGRAM_MAX];
    size_t len;
};

struct target {
    const char *name;
    uint32_t token;   /* libseccomp's */
    uint32_t machine; /* AUDIT_ARCH_*, which is the same number */
};

static const struct target targets[] = {
    {"x86_64",  SCMP_ARCH_X86_64,  SCMP_ARCH_X86_64 },
    {"aarch64", SCMP_ARCH_AARCH64, SCMP_ARCH_AARCH64},
};

static _Noreturn void die(const char *what, const char *which)
{
    fprintf(stderr, "seccomp_gen: %s: %s\n", what, which);
    exit(1);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The number of a call, or negative where the architecture has none. */
static int number_of(const struct target *target, const char *name)
{
    int number;

    for (size_t i = 0; i < COUNT(young); i++)
        if (strcmp(young[i].name, name) == 0)
            return young[i].number;
    number = seccomp_syscall_resolve_name_arch(target->token, name);
    if (number == __NR_SCMP_ERROR)
        die("unknown call", name);
    if (number >= NUMBERS)
        die("number too high", name);
    return number;
}

static void emit(struct program *program, uint16_t code, uint32_t k, int yes, int no)
{
    if (program->len == PROGRAM_MAX || yes > 255 || no > 255)
        die("program", "too long");
    program->code[program->len++] =
        (struct sock_filter){code, (uint8_t)yes, (uint8_t)no, k};
}

#define LOW(n) ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (n)))
#define ERRNO(e) (SECCOMP_RET_ERRNO | (uint32_t)(e))
#define ALLOW SECCOMP_RET_ALLOW
#define IS BPF_JMP | BPF_JEQ | BPF_K
#define OVER BPF_JMP | BPF_JGT | BPF_K
#define FROM BPF_JMP | BPF_JGE | BPF_K
#define ANY BPF_JMP | BPF_JSET | BPF_K

/* Lines of a judgement; a test says how many lines to skip when it holds or not. */
struct line {
    uint16_t code;
    uint32_t k;
    int yes, no;
};

#define LOAD(field)                                                                    \
    {                                                                                  \
        BPF_LD | BPF_W | BPF_ABS, field, 0, 0                                          \
    }
#define AND(mask)                                                                      \
    {                                                                                  \
        BPF_ALU | BPF_AND | BPF_K, mask, 0, 0                                          \
    }
#define RETURN(what)                                                                   \
    {                                                                                  \
        BPF_RET | BPF_K, what, 0, 0                                                    \
    }
#define WHEN(value, what) {IS, value, 0, 1}, RETURN(what)

static const struct line clone_lines[] = {
    LOAD(LOW(0)),
    {ANY, 0x7e020000, 0, 1}, /* CLONE_NEW* */
    RETURN(ERRNO(EPERM)),
    RETURN(ALLOW),
};

/* Asking, and the default. The others switch randomisation or protections off. */
static const struct line personality_lines[] = {
    LOAD(LOW(0)),
    WHEN(0, ALLOW),
    WHEN(0xffffffff, ALLOW),
    RETURN(ERRNO(EPERM)),
};

/* Input faked into a terminal, and the console's private calls. */
static const struct line ioctl_lines[] = {
    LOAD(LOW(1)),
    WHEN(0x5412, ERRNO(EPERM)), /* TIOCSTI */
    WHEN(0x541c, ERRNO(EPERM)), /* TIOCLINUX */
    WHEN(0x541d, ERRNO(EPERM)), /* TIOCCONS */
    RETURN(ALLOW),
};

/* UNIX; NETLINK to ask for routes; INET and INET6 with TCP, UDP and ping. The others
 * are modules that any user could load and few look after. */
static const struct line socket_lines[] = {
    LOAD(LOW(0)),
    WHEN(1, ALLOW), /* UNIX */
    {IS,   16, 0, 4}, /* NETLINK */
    LOAD(LOW(2)),
    WHEN(0, ALLOW), /* ROUTE */
    RETURN(ERRNO(EAFNOSUPPORT)),
    {IS,   2,  2, 0}, /* INET */
    {IS,   10, 1, 0}, /* INET6 */
    RETURN(ERRNO(EAFNOSUPPORT)),
    LOAD(LOW(1)),
    AND(0xf),
    {OVER, 3,  0, 1}, /* not STREAM, DGRAM or RAW: SEQPACKET would be SCTP */
    RETURN(ERRNO(EPROTONOSUPPORT)),
    LOAD(LOW(2)),
    WHEN(0, ALLOW),
    WHEN(6, ALLOW), /* TCP */
    WHEN(17, ALLOW), /* UDP */
    WHEN(1, ALLOW), /* ICMP */
    WHEN(58, ALLOW), /* ICMPv6 */
    RETURN(ERRNO(EPROTONOSUPPORT)),
};

static const struct line socketpair_lines[] = {
    LOAD(LOW(0)),
    WHEN(1, ALLOW),
    RETURN(ERRNO(EAFNOSUPPORT)),
};

/* RLIMIT_CORE stays at the 1 that keeps a core_pattern which is a pipe from running the
 * host's handler. Programs that set it to 0 to be safe are told that they are. */
static const struct line setrlimit_lines[] = {
    LOAD(LOW(0)),
    WHEN(4, ERRNO(0)),
    RETURN(ALLOW),
};

static const struct line prlimit_lines[] = {
    LOAD(LOW(1)),         {IS, 4, 1, 0},
    RETURN(ALLOW),        LOAD(LOW(2)), /* the new value: */
    {IS, 0, 0, 3},
             LOAD(LOW(2) + 4),
    WHEN(0, ALLOW), /* none, it only asks */
    LOAD(LOW(3)), /* the old value: */
    {IS, 0, 0, 3},
             LOAD(LOW(3) + 4),
    WHEN(0, ERRNO(0)), /* not wanted, so a success needs no answer */
    RETURN(ERRNO(EPERM)),
};

static const struct {
    const char *name;
    const struct line *lines;
    size_t len;
} judged[] = {
#define LINES(of) of##_lines, sizeof of##_lines / sizeof *of##_lines
    {"clone",       LINES(clone)      },
           {"personality", LINES(personality)},
    {"ioctl",       LINES(ioctl)      },
           {"socket",      LINES(socket)     },
    {"socketpair",  LINES(socketpair) },
           {"setrlimit",   LINES(setrlimit)  },
    {"prlimit64",   LINES(prlimit)    },
#undef LINES
};

/* Other ABIs (i386, x32) would be judged by the wrong numbers: they end the process. */
static void put_guard(struct program *program, const struct target *target)
{
    emit(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    emit(program, IS, target->machine, 1, 0);
    emit(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
    emit(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    if (target->token != SCMP_ARCH_X86_64)
        return;
    emit(program, FROM, 0x40000000, 0, 1);
    emit(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
}

static void put_judgements(struct program *program, const struct target *target)
{
    for (size_t i = 0; i < COUNT(judged); i++) {
        int number = number_of(target, judged[i].name);

        if (number < 0)
            continue;
        emit(program, IS, (uint32_t)number, 0, (int)judged[i].len);
        for (size_t k = 0; k < judged[i].len; k++) {
            const struct line *line = &judged[i].lines[k];

            emit(program, line->code, line->k, line->yes, line->no);
        }
    }
}

/* From `first` up to the first of the next range. */
struct range {
    uint32_t first, action;
};

static size_t make_ranges(struct range *ranges, const struct target *target)
{
    static uint32_t actions[NUMBERS];
    size_t n = 0;

    for (size_t i = 0; i < NUMBERS; i++)
        actions[i] = ERRNO(ENOSYS);
    for (size_t i = 0; i < COUNT(allowed) + COUNT(denied); i++) {
        int good = i < COUNT(allowed);
        const char *name = good ? allowed[i] : denied[i - COUNT(allowed)];
        int number = number_of(target, name);

        if (number >= 0)
            actions[number] = good ? ALLOW : ERRNO(EPERM);
    }
    /* Judged numbers do not come this far: no range ends because of them. */
    for (size_t i = 0; i < COUNT(judged); i++) {
        int number = number_of(target, judged[i].name);

        if (number > 0)
            actions[number] = actions[number - 1];
    }
    for (uint32_t i = 0; i < NUMBERS; i++)
        if (i == 0 || actions[i] != actions[i - 1])
            ranges[n++] = (struct range){i, actions[i]};
    return n;
}

/* The tree for n ranges: the lower half follows its test, the upper half comes behind.
 */
static void put_tree(struct program *program, const struct range *ranges, size_t n)
{
    size_t test = program->len;

    if (n == 1) {
        emit(program, BPF_RET | BPF_K, ranges->action, 0, 0);
        return;
    }
    emit(program, FROM, ranges[n / 2].first, 0, 0);
    put_tree(program, ranges, n / 2);
    if (program->len - test - 1 > 255) { /* farther than a test can jump */
        memmove(&program->code[test + 2], &program->code[test + 1],
                (program->len - test - 1) * sizeof *program->code);
        program->len++;
        program->code[test].jf = 1;
        program->code[test + 1] = (struct sock_filter){
            BPF_JMP | BPF_JA, 0, 0, (uint32_t)(program->len - test - 2)};
    } else {
        program->code[test].jt = (uint8_t)(program->len - test - 1);
    }
    put_tree(program, ranges + n / 2, n - n / 2);
}

/* What the kernel would do, for the instructions that occur. */
static uint32_t run(const struct program *program, const struct seccomp_data *data)
{
    const unsigned char *bytes = (const unsigned char *)data;
    uint32_t a = 0;

    for (size_t at = 0; at < program->len; at++) {
        const struct sock_filter *line = &program->code[at];
        int holds;

        switch (line->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            memcpy(&a, bytes + line->k, sizeof a);
            continue;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= line->k;
            continue;
        case BPF_RET | BPF_K:
            return line->k;
        case BPF_JMP | BPF_JA:
            at += line->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            holds = a == line->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            holds = a > line->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            holds = a >= line->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            holds = (a & line->k) != 0;
            break;
        default:
            die("check", "an instruction that is not known");
        }
        at += holds ? line->jt : line->jf;
    }
    die("check", "the program has no end");
}

static void expect(const struct program *program, const struct target *target,
                   const char *name, int number, uint64_t a, uint64_t b, uint64_t c,
                   uint64_t d, uint32_t want)
{
    const struct seccomp_data data = {
        .nr = number,
        .arch = target->machine,
        .args = {a, b, c, d},
    };

    if (run(program, &data) != want)
        die("check", name);
}

static const struct {
    const char *name;
    uint64_t args[4];
    uint32_t want;
} examples[] = {
    {"clone",       {0x1200011},             ALLOW                 },
    {"clone",       {0x3d0f00},              ALLOW                 }, /* a thread */
    {"clone",       {0x10000011},            ERRNO(EPERM)          },
    {"clone",       {0x1000040000000},       ERRNO(EPERM)          },
    {"clone",       {0x20011},               ERRNO(EPERM)          },
    {"personality", {0},                     ALLOW                 },
    {"personality", {0xffffffff},            ALLOW                 },
    {"personality", {0x40000},               ERRNO(EPERM)          },
    {"personality", {0x400000},              ERRNO(EPERM)          },
    {"ioctl",       {0, 0x5401},             ALLOW                 },
    {"ioctl",       {0, 0x5412},             ERRNO(EPERM)          },
    {"ioctl",       {0, 0x100005412},        ERRNO(EPERM)          },
    {"ioctl",       {0, 0xffffffff0000541d}, ERRNO(EPERM)          },
    {"socket",      {1, 1, 0},               ALLOW                 },
    {"socket",      {2, 0x80801, 6},         ALLOW                 },
    {"socket",      {10, 2, 17},             ALLOW                 },
    {"socket",      {2, 2, 1},               ALLOW                 },
    {"socket",      {16, 3, 0},              ALLOW                 },
    {"socket",      {16, 3, 12},             ERRNO(EAFNOSUPPORT)   },
    {"socket",      {2, 1, 262},             ERRNO(EPROTONOSUPPORT)},
    {"socket",      {2, 5, 0},               ERRNO(EPROTONOSUPPORT)},
    {"socket",      {17, 3, 0},              ERRNO(EAFNOSUPPORT)   },
    {"socket",      {38, 5, 0},              ERRNO(EAFNOSUPPORT)   },
    {"socket",      {40, 1, 0},              ERRNO(EAFNOSUPPORT)   },
    {"socketpair",  {1, 1, 0},               ALLOW                 },
    {"socketpair",  {30, 1, 0},              ERRNO(EAFNOSUPPORT)   },
    {"setrlimit",   {4},                     ERRNO(0)              },
    {"setrlimit",   {0x100000004},           ERRNO(0)              },
    {"setrlimit",   {7},                     ALLOW                 },
    {"prlimit64",   {0, 4, 0, 1},            ALLOW                 },
    {"prlimit64",   {0, 4, 1, 0},            ERRNO(0)              },
    {"prlimit64",   {0, 4, 1, 1},            ERRNO(EPERM)          },
    {"prlimit64",   {0, 4, 1ull << 32, 0},   ERRNO(0)              },
    {"prlimit64",   {0, 7, 1, 1},            ALLOW                 },
};

/* The lists, the examples, all other numbers, and other ABIs. */
static void check(const struct program *program, const struct target *target)
{
    static char seen[NUMBERS];
    const struct target other = {"other", 0, SCMP_ARCH_X86};

    for (size_t i = 0; i < COUNT(allowed) + COUNT(denied); i++) {
        int good = i < COUNT(allowed);
        const char *name = good ? allowed[i] : denied[i - COUNT(allowed)];
        int number = number_of(target, name);

        if (number < 0)
            continue;
        if (seen[number])
            die("named twice", name);
        seen[number] = 1;
        expect(program, target, name, number, 0, 0, 0, 0, good ? ALLOW : ERRNO(EPERM));
        expect(program, &other, name, number, 0, 0, 0, 0, SECCOMP_RET_KILL_PROCESS);
        if (target->token == SCMP_ARCH_X86_64)
            expect(program, target, "x32", number | 0x40000000, 0, 0, 0, 0,
                   SECCOMP_RET_KILL_PROCESS);
    }
    for (size_t i = 0; i < COUNT(examples); i++) {
        const uint64_t *args = examples[i].args;
        int number = number_of(target, examples[i].name);

        seen[number] = 1;
        expect(program, target, examples[i].name, number, args[0], args[1], args[2],
               args[3], examples[i].want);
    }
    for (int number = 0; number < (int)sizeof seen; number++)
        if (!seen[number])
            expect(program, target, "an unlisted call", number, 0, 0, 0, 0,
                   ERRNO(ENOSYS));
}

static void print(const struct program *program, const struct target *target)
{
    printf("/* seccomp_filter.h - generated for %s by seccomp_gen */\n"
           "static const struct sock_filter wv_seccomp_filter[%zu] = {\n",
           target->name, program->len);
    for (size_t i = 0; i < program->len; i++)
        printf("    {0x%02x, %u, %u, 0x%08x},\n", (unsigned)program->code[i].code,
               (unsigned)program->code[i].jt, (unsigned)program->code[i].jf,
               (unsigned)program->code[i].k);
    printf("};\n");
}

int main(int argc, char **argv)
{
    static struct program program;
    static struct range ranges[NUMBERS];
    const struct target *target = NULL;

    for (size_t i = 0; argc == 2 && i < COUNT(targets); i++)
        if (strcmp(argv[1], targets[i].name) == 0)
            target = &targets[i];
    if (target == NULL)
        die("usage", "seccomp_gen x86_64|aarch64");
    put_guard(&program, target);
    put_judgements(&program, target);
    put_tree(&program, ranges, make_ranges(ranges, target));
    check(&program, target);
    print(&program, target);
    return fflush(stdout) == 0 ? 0 : 1;
}
