// Signals of a program that is traced: one line a case.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf back;
static char *page; // May be read; the page behind it may not be accessed.
static volatile int depth, handled, last_code;
static void *volatile last_address;
static volatile unsigned long last_ip;
static volatile long sums[512];
static char own_stack[1 << 16];

static void set(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};
    sigaction(signal, &action, NULL);
}

static unsigned long *ip_of(void *context) {
    return (unsigned long *)&((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

static void note(siginfo_t *info, void *context) {
    handled++;
    last_code = info->si_code;
    last_address = info->si_addr;
    last_ip = *ip_of(context);
    sums[handled % 512]++;
}

static void jumps(int signal, siginfo_t *info, void *context) {
    note(info, context);
    siglongjmp(back, 1);
}

static void opens(int signal, siginfo_t *info, void *context) {
    note(info, context);
    mprotect((void *)((uintptr_t)info->si_addr & -4096ul), 4096, PROT_READ | PROT_WRITE);
}

// The faulting instructions below have two bytes: `mov %eax, (%rcx)` and `mov (%rcx), %eax`.
static void skips(int signal, siginfo_t *info, void *context) {
    note(info, context);
    *ip_of(context) += 2;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 77;
}

static void nests(int signal, siginfo_t *info, void *context) {
    note(info, context);
    sigjmp_buf inner, outer;
    if (++depth < 3) {
        memcpy(&outer, &back, sizeof back);
        if (!sigsetjmp(inner, 1)) {
            memcpy(&back, &inner, sizeof back);
            *(volatile char *)(8l * depth) = 1;
        }
        memcpy(&back, &outer, sizeof back);
    }
    siglongjmp(back, 1);
}

extern char store_at[], load_at[], wide_at[];
__attribute__((noinline)) static void store(void *to) {
    __asm__ volatile(".globl store_at\nstore_at: mov %%eax, (%0)" : : "c"(to), "a"(5) : "memory");
}
__attribute__((noinline)) static int load(void *from) {
    int got = 1;
    __asm__ volatile(".globl load_at\nload_at: mov (%1), %0" : "+a"(got) : "c"(from));
    return got;
}
__attribute__((noinline)) static void wide(void *to) {
    __asm__ volatile(".globl wide_at\nwide_at: movups %%xmm0, (%0)" : : "c"(to) : "memory");
}

static void say(const char *what, void *address, void *ip) {
    const char *place = last_address == address ? "right" : "wrong";
    const char *instruction = last_ip == (unsigned long)ip ? "right" : "wrong";
    printf("%s: code %d, address %s, instruction %s\n", what, last_code, place, instruction);
}

static void faults(const char *name, int flags) {
    printf("-- %s\n", name);
    set(SIGSEGV, jumps, flags);
    if (!sigsetjmp(back, 1))
        store(NULL);
    say("null", NULL, store_at);
    if (!sigsetjmp(back, 1))
        store(page + 16);
    say("read only", page + 16, store_at);
    if (!sigsetjmp(back, 1))
        load(page + 4096);
    say("guard", page + 4096, load_at);
    // Over the border: the address is of the page that cannot be had.
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    if (!sigsetjmp(back, 1))
        wide(page + 4090);
    say("border", page + 4096, wide_at);
    mprotect(page, 4096, PROT_READ);
    if (!sigsetjmp(back, 1))
        load((void *)0x8000000000000000);
    say("not canonical", NULL, load_at);
    // Within a function of libc, whose instruction is its own affair.
    volatile unsigned long len = 100;
    if (!sigsetjmp(back, 1))
        memset(page + 64, 1, len);
    printf("memset %d\n", (char *)last_address - page - 64ul < 100);
    if (!sigsetjmp(back, 1))
        memcpy((char *)sums, page + 4090, len);
    printf("memcpy %d\n", (char *)last_address - page - 4096ul < 94);
    if (!sigsetjmp(back, 1))
        __asm__ volatile("rep movsb" : : "D"(page + 9), "S"(sums), "c"(20) : "memory");
    say("string", page + 9, (void *)last_ip);
    set(SIGSEGV, opens, flags);
    store(page + 32);
    printf("opened %d\n", load(page + 32));
    mprotect(page, 4096, PROT_READ);
    set(SIGSEGV, skips, flags);
    store(page + 36);
    printf("skipped %d %d\n", *(int *)(page + 36), load(page + 4096));
    depth = 0;
    set(SIGSEGV, nests, flags | SA_NODEFER);
    if (!sigsetjmp(back, 1))
        store(page + 40);
    printf("nested %d\n", depth);
}

static void *faults_in_thread(void *unused) {
    faults("thread", 0);
    return NULL;
}

static volatile int ticks, in_order = 1;
static volatile long counted[64];
static void on_tick(int signal, siginfo_t *info, void *context) {
    int old = errno;
    ticks++;
    counted[ticks % 64]++;
    errno = old;
}

// What the handler must not disturb: sums over memory that is traced.
static unsigned long work(unsigned *all, int len) {
    unsigned long sum = 0;
    for (int i = 0; i < len; i++) {
        all[i] = all[(i * 7) % len] + i;
        __asm__ volatile("lock xaddl %k0, %1" : "+r"(sum), "+m"(all[i]));
    }
    for (int i = 0; i < len; i++)
        sum = sum * 31 + all[i];
    return sum;
}

// Traced, it takes longer than from one signal to the next.
static void on_slow_tick(int signal, siginfo_t *info, void *context) {
    static volatile long all[256];
    for (int i = 0; i < 500; i++)
        all[i % 256]++;
    on_tick(signal, info, context);
}

static void timers(const char *name, int kind) {
    ticks = 0;
    set(SIGALRM, kind > 2 ? on_slow_tick : on_tick,
        SA_RESTART | (kind == 2 ? SA_ONSTACK : kind == 4 ? SA_NODEFER : 0));
    struct itimerval often = {{0, 200}, {0, 200}}, never = {0};
    timer_t timer;
    if (kind == 0 || kind == 4) {
        setitimer(ITIMER_REAL, &often, NULL);
    } else {
        struct sigevent *event = calloc(1, sizeof *event);
        event->sigev_notify = SIGEV_SIGNAL;
        event->sigev_signo = SIGALRM;
        timer_create(CLOCK_MONOTONIC, event, &timer);
        struct itimerspec *when = calloc(1, sizeof *when);
        when->it_value.tv_nsec = when->it_interval.tv_nsec = 200000;
        timer_settime(timer, 0, when, NULL);
    }
    unsigned *all = calloc(1000, sizeof *all);
    unsigned long sum = 0;
    for (int turn = 0; turn < 5; turn++)
        sum ^= work(all, 1000);
    while (ticks < 20)
        sum ^= 0 * work(all, 100);
    if (kind == 0 || kind == 4)
        setitimer(ITIMER_REAL, &never, NULL);
    else
        timer_delete(timer);
    long all_counted = 0;
    for (int i = 0; i < 64; i++)
        all_counted += counted[i];
    printf("%s %lx, ticked %d\n", name, sum, all_counted >= 20);
}

static void *timed_thread(void *sum) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    event._sigev_un._tid = gettid();
    timer_t timer;
    struct itimerspec often = {{0, 200000}, {0, 200000}};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &often, NULL);
    unsigned *all = calloc(1000, sizeof *all);
    for (int turn = 0; turn < 20; turn++)
        *(unsigned long *)sum ^= work(all, 1000);
    while (ticks < 20)
        work(all, 100);
    timer_delete(timer);
    return NULL;
}

// Each is interrupted by its own timer, also in its slow handler.
static void timed_threads(void) {
    ticks = 0;
    set(SIGRTMIN, on_slow_tick, SA_RESTART | SA_NODEFER);
    pthread_t threads[2];
    static unsigned long sums[2];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], &small, timed_thread, &sums[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("threads %lx %lx\n", sums[0], sums[1]);
}

// Instructions that are stepped meanwhile: their pages are open, and the trap flag is set.
static void stepped(void) {
    static const char table[256] = {[5] = 50, [6] = 60};
    char *own = malloc(256);
    memcpy(own, table, 256);
    ticks = 0;
    struct itimerval often = {{0, 100}, {0, 100}}, never = {0};
    setitimer(ITIMER_REAL, &often, NULL);
    long sum = 0;
    for (int i = 0; i < 3000 || ticks < 20; i++) {
        unsigned char which = 5 + i % 2, got = which;
        __asm__ volatile("xlat" : "+a"(got) : "b"(own));
        sum += got != own[which];
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("stepped %ld\n", sum);
}

static void leaves(int signal, siginfo_t *info, void *context) {
    ticks++;
    siglongjmp(back, 1);
}

// Handlers that leave whatever was going on.
static void leave(void) {
    set(SIGALRM, leaves, 0);
    ticks = 0;
    volatile int turns = 0;
    volatile int *heap = calloc(100, sizeof *heap);
    sigsetjmp(back, 1);
    struct itimerval once = {{0, 0}, {0, 300}};
    if (ticks < 30) {
        setitimer(ITIMER_REAL, &once, NULL);
        for (;;) {
            heap[turns++ % 100]++;
            memset((void *)(heap + 50), 0, 4 * (turns % 50));
        }
    }
    heap[7] = 4;
    printf("left %d %d\n", ticks, heap[7]);
    // Out of a system call.
    ticks = 0;
    int *pipes = malloc(8);
    pipe(pipes);
    if (!sigsetjmp(back, 1)) {
        setitimer(ITIMER_REAL, &once, NULL);
        read(pipes[0], (void *)heap, 4);
    }
    printf("left a call %d\n", ticks);
}

static volatile sig_atomic_t got_signal, got_value;
static void with_value(int signal, siginfo_t *info, void *context) {
    got_signal = signal;
    got_value = info->si_value.sival_int + (info->si_pid == getpid());
}

static void *waits(void *set) {
    siginfo_t *info = malloc(sizeof *info);
    int got = sigwaitinfo(set, info);
    return (void *)(long)(got * 100 + info->si_value.sival_int);
}

static void *killed(void *unused) {
    while (!got_signal)
        usleep(100);
    return NULL;
}

static void sent(void) {
    set(SIGUSR1, with_value, 0);
    sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 41});
    printf("value %d\n", got_value);
    // Our own four, when somebody sends them.
    for (int i = 0; i < 4; i++) {
        int signals[] = {SIGSEGV, SIGBUS, SIGTRAP, SIGSYS};
        set(signals[i], with_value, 0);
        got_signal = 0;
        sigqueue(getpid(), signals[i], (union sigval){.sival_int = i});
        printf("sent %d %d\n", got_signal, got_value);
    }
    set(SIGTRAP, with_value, 0);
    got_signal = 0;
    __asm__ volatile("int3");
    printf("int3 %d\n", got_signal);
    // Once only.
    set(SIGUSR1, with_value, SA_RESETHAND);
    raise(SIGUSR1);
    struct sigaction *old = malloc(sizeof *old);
    sigaction(SIGUSR1, NULL, old);
    printf("reset %d\n", old->sa_handler == SIG_DFL);
    set(SIGSEGV, jumps, SA_RESETHAND);
    if (!sigsetjmp(back, 1))
        store(NULL);
    sigaction(SIGSEGV, NULL, old);
    printf("reset %d\n", old->sa_handler == SIG_DFL);
    sigset_t *set_of = malloc(sizeof *set_of), *before = malloc(sizeof *before);
    sigemptyset(set_of);
    sigaddset(set_of, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, set_of, before);
    pthread_t thread;
    pthread_create(&thread, NULL, waits, set_of);
    sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 6});
    void *result;
    pthread_join(thread, &result);
    printf("waited %ld\n", (long)result);
    set(SIGUSR1, with_value, 0);
    got_signal = 0;
    pthread_create(&thread, NULL, killed, NULL);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    printf("killed %d\n", got_signal);
    sigaddset(set_of, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, set_of, NULL);
    pthread_sigmask(SIG_SETMASK, before, set_of);
    printf("blocked %d %d\n", sigismember(set_of, SIGUSR2), sigismember(set_of, SIGUSR1));
    // The mask within a handler, and that of a thread that a handler of another signal left.
    raise(SIGUSR1);
    sigprocmask(SIG_SETMASK, NULL, set_of);
    printf("mask %d\n", sigismember(set_of, SIGUSR1));
}

static volatile int on_own;
static void where(int signal, siginfo_t *info, void *context) {
    stack_t *stack = malloc(sizeof *stack);
    sigaltstack(NULL, stack);
    // What runtimes check: the handler is on the stack that it is told.
    unsigned long above = (unsigned long)info - (unsigned long)stack->ss_sp;
    on_own = stack->ss_flags == SS_ONSTACK && above < stack->ss_size;
    if (signal == SIGSEGV)
        siglongjmp(back, 1);
}

static int overflow(volatile char *above) {
    volatile char here[4096];
    here[0] = above[0];
    return overflow(here) + here[0];
}

static void *overflows(void *unused) {
    char *stack = malloc(1 << 16);
    stack_t new = {.ss_sp = stack, .ss_size = 1 << 16}, off = {.ss_flags = SS_DISABLE};
    sigaltstack(&new, NULL);
    volatile int done = 0;
    volatile char start = 1;
    if (!sigsetjmp(back, 1))
        done = overflow(&start);
    sigaltstack(&off, NULL);
    free(stack);
    return (void *)7;
}

static void stacks(void) {
    stack_t stack = {.ss_sp = own_stack, .ss_size = sizeof own_stack};
    sigaltstack(&stack, NULL);
    set(SIGUSR1, where, SA_ONSTACK);
    raise(SIGUSR1);
    printf("stack %d\n", on_own);
    set(SIGSEGV, where, SA_ONSTACK);
    on_own = 0;
    if (!sigsetjmp(back, 1))
        store(NULL);
    printf("stack %d\n", on_own);
    set(SIGSEGV, jumps, SA_ONSTACK);
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, overflows, NULL);
    pthread_join(thread, &result);
    printf("overflow %ld\n", (long)result);
}

static void ends(const char *name, void (*by)(void)) {
    pid_t child = fork();
    if (child == 0) {
        by();
        _exit(3);
    }
    int status;
    waitpid(child, &status, 0);
    printf("%s: signal %d, code %d\n", name, WTERMSIG(status), WEXITSTATUS(status));
}

static void by_fault(void) {
    signal(SIGSEGV, SIG_DFL);
    store(page + 16);
}
static void by_ignored_fault(void) {
    signal(SIGSEGV, SIG_IGN);
    raise(SIGSEGV);
    store(NULL);
}
static void by_trap(void) {
    signal(SIGTRAP, SIG_DFL);
    __asm__ volatile("int3");
}
static void by_instruction(void) {
    __asm__ volatile("ud2");
}
static void by_division(void) {
    volatile int zero = sums[500];
    sums[501] = 5 / zero;
}
static void by_sent(void) {
    signal(SIGBUS, SIG_DFL);
    kill(getpid(), SIGBUS);
}
static void by_abort(void) {
    abort();
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page, 4096, PROT_READ);
    mprotect(page + 4096, 4096, PROT_NONE);
    faults("plain", 0);
    stack_t stack = {.ss_sp = own_stack, .ss_size = sizeof own_stack};
    stack_t off = {.ss_flags = SS_DISABLE};
    sigaltstack(&stack, NULL);
    faults("own stack", SA_ONSTACK);
    sigaltstack(&off, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, faults_in_thread, NULL);
    pthread_join(thread, NULL);
    printf("handled %d\n", handled);
    timers("setitimer", 0);
    timers("timer_create", 1);
    timers("on stack", 2);
    timers("slow", 3);
    timers("slow, within itself", 4);
    timed_threads();
    set(SIGALRM, on_tick, SA_RESTART);
    stepped();
    leave();
    sent();
    stacks();
    signal(SIGALRM, SIG_DFL);
    ends("fault", by_fault);
    ends("ignored fault", by_ignored_fault);
    ends("trap", by_trap);
    ends("instruction", by_instruction);
    ends("division", by_division);
    ends("sent", by_sent);
    ends("abort", by_abort);
    return 0;
}
