// System calls by which the kernel reads or writes memory on its own. One line a case.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOTH (PROT_READ | PROT_WRITE)
#define PLAIN (MAP_PRIVATE | MAP_ANONYMOUS)

static pthread_mutex_t mutex;
static volatile long counts[2][1000], counter;
static int pidfd = -1;
static volatile int sum;

static void *lock(void *unused) {
    pthread_mutex_lock(&mutex);
    return NULL;
}

static void robust(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &attributes);
    pthread_t thread;
    pthread_create(&thread, NULL, lock, NULL);
    pthread_join(thread, NULL);
    printf("robust %s\n", strerror(pthread_mutex_lock(&mutex)));
}

static void sequence(void) {
    struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    for (int turn = 0; turn < 10; turn++) {
        asm goto volatile(".pushsection __rseq_cs,\"aw\"\n.balign 32\n"
                          "3: .long 0,0\n.quad 1f,(2f-1f),4f\n.popsection\n"
                          "5: lea 3b(%%rip),%%rax\nmov %%rax,%[cs]\n"
                          "1: addq $1,%[c]\n"
                          "2: movq $0,%[cs]\njmp 6f\n.long 0x53053053\n4: jmp 5b\n6:\n" ::[cs] "m"(
                              area->rseq_cs),
                          [c] "m"(counter)
                          : "rax", "memory"
                          : out);
    out:;
    }
    printf("sequence %ld\n", counter);
}

static int child(void *unused) {
    for (int turn = 0; turn < 2000; turn++)
        counts[1][turn % 1000]++;
    return 0;
}

static void shared(void) {
    char *stack = mmap(NULL, 1 << 16, BOTH, PLAIN | MAP_STACK, -1, 0);
    int pid = clone(child, stack + (1 << 16), CLONE_VM | SIGCHLD, NULL), status;
    for (int turn = 0; turn < 2000; turn++)
        counts[0][turn % 1000]++;
    waitpid(pid, &status, 0);
    printf("shared %ld %ld %x\n", counts[0][5], counts[1][5], status);
}

static void clones(void) {
    struct clone_args args = {.flags = CLONE_PIDFD, .pidfd = (long)&pidfd, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (!pid)
        _exit(0);
    printf("clone3 %d %d\n", pid > 0, pidfd >= 0);
    waitpid(pid, NULL, 0);
    pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (!pid)
        _exit(0);
    waitpid(pid, NULL, 0);
    char *map = mmap(NULL, 1 << 20, BOTH, PLAIN, -1, 0);
    map[0] = 1;
    int status;
    if (!(pid = fork()))
        _exit(map[0]);
    waitpid(pid, &status, 0);
    printf("files %d\n", WEXITSTATUS(status));
}

struct block {
    void *self;
    char room[4088];
    volatile int number;
};

static int end_at_once(void *unused) {
    asm volatile("syscall" ::"a"(SYS_exit), "D"(0) : "rcx", "r11");
    return 0;
}

static void number(void) {
    char *stack = malloc(300000);
    struct block *block = aligned_alloc(4096, 3 * 4096);
    memset(block, 0, sizeof *block);
    block->self = block;
    block->number = 1;
    clone(end_at_once, stack + 299984 - ((long)stack & 15),
          CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
              CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
          NULL, &block->number, block, &block->number);
    for (int turn = 0; turn < 1000 && block->number; turn++)
        usleep(1000);
    printf("number %d\n", block->number);
}

static void truncated(void) {
    int sockets[2], changed = 0;
    static char large[3000];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets);
    memset(large, 7, sizeof large);
    write(sockets[0], large, sizeof large);
    char *map = mmap(NULL, 8192, BOTH, PLAIN, -1, 0);
    mmap(map + 4096, 4096, BOTH, PLAIN | MAP_FIXED | MAP_STACK, -1, 0);
    memset(map, 9, 8192);
    int got = recv(sockets[1], map + 4096 - 5, 10, MSG_TRUNC);
    for (int at = 4096 + 5; at < 8192; at++)
        changed += map[at] != 9;
    printf("truncated %d %d\n", got, changed);
}

static void deep(int level) {
    volatile char room[4096];
    memset((void *)room, level, sizeof room);
    if (level)
        deep(level - 1);
    sum += room[7];
}

static void go_deep(int signal) { deep(180); }

static void stack(void) {
    stack_t stack = {.ss_sp = mmap(NULL, 1 << 20, BOTH, PLAIN, -1, 0), .ss_size = 1 << 20};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = go_deep, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    printf("stack %d\n", sum);
}

static int ends[2];

static void fail_again(int signal) {
    write(ends[1], "x", 1);
    *(volatile int *)0 = 1;
}

static void failures(void) {
    char bytes[100];
    int status;
    pipe(ends);
    if (!fork()) {
        signal(SIGSEGV, fail_again);
        *(volatile int *)0 = 1;
    }
    wait(&status);
    printf("failures %zd %d\n", read(ends[0], bytes, sizeof bytes), WTERMSIG(status));
}

static void old_call(void) {
    long result;
    asm volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
    printf("old call %d\n", result == getpid());
}

static long size(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    fscanf(file, "%ld", &pages);
    fclose(file);
    return pages;
}

static void spawned(void) {
    char *words[] = {"true", NULL}, *none[] = {NULL};
    long before = 0;
    for (int turn = 0; turn < 6; turn++) {
        pid_t pid;
        posix_spawn(&pid, "/bin/true", NULL, NULL, words, none);
        waitpid(pid, NULL, 0);
        if (turn == 2)
            before = size();
    }
    printf("spawned %ld\n", size() - before);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    robust();
    sequence();
    shared();
    clones();
    number();
    truncated();
    stack();
    failures();
    old_call();
    spawned();
}
