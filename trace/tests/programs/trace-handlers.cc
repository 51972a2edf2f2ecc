// What handlers of signals see, and what happens when they do not return. One line a case.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <pthread.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

extern char __executable_start, etext;
static volatile long data[64];
static volatile int calls, outside, depth, is_checked;
static sigjmp_buf back;
static int pipes[2];

static unsigned long ip_of(void *context) {
    return ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

static void sample(int, siginfo_t *, void *context) {
    calls++;
    unsigned long start = (unsigned long)&__executable_start;
    // In `setitimer` it would be rightly in libc.
    outside += is_checked && ip_of(context) - start >= (unsigned long)&etext - start;
}

static void walk(int) {
    void *frames[64];
    depth = backtrace(frames, 64);
}

static void leave(int signal) { siglongjmp(back, signal); }

static void on_division(int, siginfo_t *info, void *context) {
    outside = info->si_addr != (void *)ip_of(context);
    is_checked = 1;
    sample(0, info, context);
    siglongjmp(back, 1);
}

static void on_twice(int) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    calls = 10 * sigismember(&mask, SIGUSR1) + sigismember(&mask, SIGUSR2);
}

static void set(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(signal, &action, NULL);
}

static void ring(long first, long then) {
    struct itimerval timer = {{0, then}, {0, first}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

struct Scoped {
    ~Scoped() { write(1, "destroyed\n", 10); }
};

static void clean(void *) { write(1, "cleaned\n", 8); }

static void *wait_for_ever(void *) {
    Scoped scoped;
    pthread_cleanup_push(clean, NULL);
    char *heap = (char *)malloc(10);
    write(pipes[1], "a", 1);
    for (;;)
        read(pipes[0], heap, heap[0] == 'a' ? 10 : 1);
    pthread_cleanup_pop(0);
    return NULL;
}

__attribute__((noinline)) static void count(long turns) {
    for (long at = 0; at < turns; at++)
        data[at % 64]++;
}

int main() {
    setvbuf(stdout, NULL, _IONBF, 0);
    // Each sample is at an instruction of the loop, and each access is recorded once.
    struct sigaction action = {};
    action.sa_sigaction = sample;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    ring(300, 300);
    long turns = 0, sum = 0;
    is_checked = 1;
    while (calls < 100) {
        count(640);
        turns += 640;
    }
    is_checked = 0;
    ring(0, 0);
    for (int at = 0; at < 64; at++)
        sum += data[at];
    printf("outside %d, all %d\n", outside, sum == turns);
    fprintf(stderr, "turns %ld %p %p\n", turns, (void *)data, (void *)(data + 64));

    action.sa_sigaction = on_division;
    sigaction(SIGFPE, &action, NULL);
    volatile int one = 1, *zero = (int *)calloc(1, 4);
    if (!sigsetjmp(back, 1))
        one /= *zero;
    printf("division %d\n", outside);

    // A handler that leaves a block operation, another that leaves a call.
    signal(SIGSEGV, leave);
    char *volatile nowhere = (char *)8, *heap = (char *)malloc(10);
    if (!sigsetjmp(back, 1))
        memcpy(heap, nowhere, 10);
    pipe(pipes);
    signal(SIGALRM, leave);
    if (!sigsetjmp(back, 1)) {
        ring(20000, 20000);
        read(pipes[0], heap, 10);
    }
    ring(0, 0);
    for (int at = 0; at < 10; at++)
        data[at] = 77;
    fprintf(stderr, "seen %p\n", (void *)data);

    void *frames[64];
    backtrace(frames, 64);
    set(SIGALRM, walk, 0);
    ring(20000, 0);
    printf("read %zd\n", read(pipes[0], heap, 10));
    printf("deep %d\n", depth > 3);

    set(SIGUSR1, on_twice, 0);
    raise(SIGUSR1);
    printf("masks %d\n", calls);
    set(SIGUSR1, on_twice, SA_NODEFER | SA_RESETHAND);
    sigaction(SIGUSR1, NULL, &action);
    printf("set %d %d\n", action.sa_handler == on_twice, (action.sa_flags & SA_RESETHAND) != 0);
    raise(SIGUSR1);
    sigaction(SIGUSR1, NULL, &action);
    printf("masks %d, reset %d\n", calls, action.sa_handler == SIG_DFL);

    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d\n", result == PTHREAD_CANCELED);
}
