// What happens to memory while others use it, or its limits are met: one line a case.
#define _GNU_SOURCE
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096l
#define BOTH (PROT_READ | PROT_WRITE)
#define PLACES 40
#define STACK (128 << 10)

static char *map(long len) {
    return mmap(NULL, len, BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// Stacks, and what another thread fills and counts beside them.
static struct place {
    char stack[STACK - 16 * PAGE], filled[15 * PAGE];
    volatile long counters[512];
} *places;
static volatile int stop, place, faults, alarms, calls;
static long counted[PLACES];

static void *count(void *unused) {
    while (!stop) {
        int at = place;
        memset(places[at].filled, counted[at], sizeof places[at].filled);
        places[at].counters[7]++;
        counted[at]++;
    }
    return unused;
}

static ucontext_t outer, inner;

static void run_on(char *stack, long len, void (*function)(void)) {
    getcontext(&inner);
    inner.uc_stack.ss_sp = stack;
    inner.uc_stack.ss_size = len;
    inner.uc_link = &outer;
    makecontext(&inner, function, 0);
    swapcontext(&outer, &inner);
}

static void local(void) {
    volatile char bytes[1000];
    bytes[0] = 1;
}

static void *nothing(void *unused) {
    return unused;
}

static int wrong_counters(int of_threads) {
    pthread_t counter, other;
    places = (struct place *)map(PLACES * sizeof *places);
    stop = place = 0;
    memset(counted, 0, sizeof counted);
    pthread_create(&counter, NULL, count, NULL);
    for (int at = 0; at < PLACES; at++) {
        place = at;
        for (volatile int turn = 0; turn < 1000; turn++)
            ;
        if (of_threads) {
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            pthread_attr_setstack(&attributes, places[at].stack, sizeof places[at].stack);
            pthread_create(&other, &attributes, nothing, NULL);
            pthread_join(other, NULL);
        } else {
            run_on(places[at].stack, sizeof places[at].stack, local);
        }
    }
    stop = 1;
    pthread_join(counter, NULL);
    int wrong = 0;
    for (int at = 0; at < PLACES; at++) {
        wrong += places[at].counters[7] != counted[at];
        for (int byte = 0; counted[at] > 0 && byte < sizeof places[at].filled; byte += 64)
            wrong += places[at].filled[byte] != (char)(counted[at] - 1);
    }
    return wrong;
}

static void on_signal(int signal) {
    faults += signal == SIGSEGV;
    alarms += signal == SIGALRM;
}

static void *touch(void *unused) {
    while (!stop)
        for (int at = 0; at < PLACES; at++)
            counted[at]++;
    return unused;
}

static int sent_faults(void) {
    pthread_t thread;
    stop = 0;
    pthread_create(&thread, NULL, touch, NULL);
    for (int turn = 0; turn < 2000; turn++) {
        pthread_kill(thread, SIGSEGV);
        usleep(50);
    }
    stop = 1;
    pthread_join(thread, NULL);
    return faults > 0;
}

static void called(void) {
    calls++;
}
static void (*pointer)(void) = called;

// The stack pointer goes where nothing was accessed before.
static void call_far_down(void) {
    __asm__ volatile("sub $300000, %%rsp\n call *%0\n add $300000, %%rsp"
                     :
                     : "m"(pointer)
                     : "memory", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11");
}

static void wait_far_down(void) {
    __asm__ volatile("sub $300000, %%rsp\n 1: cmpl $2, %0\n jl 1b\n add $300000, %%rsp"
                     :
                     : "m"(alarms));
}

// How a child ends.
static int child(void (*function)(void)) {
    int status;
    if (fork() == 0) {
        signal(SIGSEGV, SIG_DFL);
        function();
        _exit(0);
    }
    wait(&status);
    return status;
}

static void return_to_nowhere(void) {
    __asm__ volatile("mov $16, %rsp\n mov $15, %eax\n syscall");
}

static void exit_with_five(void) {
    _exit(5);
}

// Without the right to write where traces are made.
static void fork_as_nobody(void) {
    setgid(65534);
    setuid(65534);
    _exit(WEXITSTATUS(child(exit_with_five)));
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    void *frames[9];
    printf("backtrace loads a library %d\n", backtrace(frames, 9) > 1);
    char *stack = malloc(1 << 20);
    run_on(stack, 1 << 20, call_far_down);
    printf("a call far down %d\n", calls);
    free(stack);
    printf("sigreturn to nowhere %d\n", child(return_to_nowhere));
    printf("a child of nobody's %d\n", child(fork_as_nobody));

    char *page = map(2 * PAGE);
    page[0] = 42;
    char *other = mmap(page, PAGE, BOTH, MAP_PRIVATE | MAP_FIXED, 999, 0);
    printf("a mapping that fails %d %d\n", other == MAP_FAILED, page[0]);
    mprotect(page, PAGE, PROT_NONE);
    other = mremap(page, PAGE, 100 * PAGE, MREMAP_MAYMOVE);
    mprotect(other, PAGE, BOTH);
    printf("moved while closed %d\n", other[0]);
    int cleared = madvise(other, PAGE, 24);
    printf("cleared though locked %d\n", cleared != 0 || other[0] == 0);
    long none = syscall(SYS_pkey_mprotect, other, PAGE, PROT_READ, -1);
    int tube[2];
    pipe(tube);
    write(tube[1], "x", 1);
    printf("no key %d %d\n", none == 0, read(tube[0], other, 1) < 0);
    char *many = map(20000 * PAGE);
    int failed = 0;
    for (int at = 0; at < 20000; at += 2)
        failed += mprotect(many + at * PAGE, PAGE, PROT_READ) != 0;
    for (int at = 1; at < 20000; at += 200)
        many[at * PAGE] = many[(at - 1) * PAGE] + 1;
    printf("many mappings %d %d\n", failed, many[PAGE]);

    // These use up the room that the trace has.
    signal(SIGALRM, on_signal);
    struct itimerval soon = {{0, 1000}, {0, 1000}}, never = {0};
    setitimer(ITIMER_REAL, &soon, NULL);
    stack = malloc(1 << 20);
    run_on(stack, 1 << 20, wait_far_down);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("signals far down\n");
    signal(SIGSEGV, on_signal);
    printf("counters beside stacks of coroutines %d\n", wrong_counters(0));
    printf("counters beside stacks of threads %d\n", wrong_counters(1));
    printf("faults that are sent %d\n", sent_faults());
    return 0;
}
