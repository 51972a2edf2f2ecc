// Processes that a traced program makes, also from threads: one line a case.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static int data[3000] = {1, 2, 3}, bss[3000];

static int ended(pid_t child) {
    int *status = malloc(sizeof *status);
    waitpid(child, status, 0);
    int got = WIFEXITED(*status) ? WEXITSTATUS(*status) : 1000 + WTERMSIG(*status);
    free(status);
    return got;
}

// What a child changes is its own; what it shares, it shares.
static void memory(void) {
    int *heap = malloc(4000), *pipes = malloc(8);
    char *large = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    heap[5] = 1;
    large[1 << 19] = 2;
    mprotect(large, 4096, PROT_READ);
    pipe(pipes);
    pid_t child = fork();
    if (child == 0) {
        heap[5] += 10;
        large[1 << 19] += 10;
        data[2000] = bss[2000] = 9;
        shared[0] = heap[5] + large[1 << 19];
        char *more = malloc(1 << 22);
        memset(more, 7, 1 << 22);
        // A grandchild, and one of that.
        pid_t second = fork();
        if (second == 0) {
            heap[5] += 100;
            pid_t third = fork();
            if (third == 0)
                _exit(heap[5] % 256);
            _exit(ended(third) + 1);
        }
        heap[6] = ended(second);
        write(pipes[1], &heap[5], 8);
        free(more);
        exit(heap[5]);
    }
    heap[5] += 1000;
    int got = ended(child), words[2];
    read(pipes[0], words, 8);
    printf("fork %d: %d %d, mine %d %d %d %d, shared %d\n", got, words[0], words[1], heap[5],
           large[1 << 19], data[2000], bss[2000], shared[0]);
}

static int turns[4];
static void *forks(void *which) {
    int *mine = which, *heap = malloc(400);
    for (int i = 0; i < 8; i++) {
        heap[i] = i;
        pid_t child = fork();
        if (child == 0) {
            for (int at = 0; at < 100; at++)
                heap[at] = heap[i] + at;
            char *text = malloc(100);
            _exit(heap[99] == 2 * i + 99 && text ? i : 99);
        }
        *mine += ended(child);
    }
    free(heap);
    return NULL;
}

static volatile int stops;
static void *counts(void *unused) {
    long *sum = calloc(100, sizeof *sum), turn = 0;
    while (!stops)
        sum[turn++ % 100]++;
    for (int i = 1; i < 100; i++)
        sum[0] += sum[i];
    return (void *)(sum[0] - turn);
}

static void threads(void) {
    pthread_t all[4], counter;
    pthread_create(&counter, NULL, counts, NULL);
    for (int i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, forks, &turns[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    stops = 1;
    void *lost;
    pthread_join(counter, &lost);
    printf("threads that fork %d %d %d %d, lost %ld\n", turns[0], turns[1], turns[2], turns[3],
           (long)lost);
}

static int prepared, parents, children;
static void prepare(void) { prepared++; }
static void in_parent(void) { parents++; }
static void in_child(void) { children++; }

static int on_clone(void *heap) {
    ++*(int *)heap;
    return 7;
}

static void others(void) {
    pthread_atfork(prepare, in_parent, in_child);
    pid_t child = fork();
    if (child == 0)
        _exit(children);
    printf("at fork %d: %d %d %d\n", ended(child), prepared, parents, children);
    int *heap = calloc(10, sizeof *heap);
    child = vfork();
    if (child == 0) {
        heap[1] = 5;
        _exit(3);
    }
    printf("vfork %d %d\n", ended(child), heap[1]);
    char *words[] = {strdup("sh"), strdup("-c"), strdup("echo $WORD; exit 4"), NULL};
    char *names[] = {strdup("WORD=spawned"), NULL};
    pid_t *spawned = malloc(sizeof *spawned);
    posix_spawn_file_actions_t *actions = malloc(sizeof *actions);
    posix_spawn_file_actions_init(actions);
    posix_spawn_file_actions_addopen(actions, 5, "/dev/null", O_RDONLY, 0);
    int failed = posix_spawn(spawned, "/bin/sh", actions, NULL, words, names);
    int code = ended(*spawned);
    printf("spawn %d %d\n", failed, code);
    char *nowhere = strdup("/no/where");
    printf("spawn %d\n", posix_spawn(spawned, nowhere, NULL, NULL, words, names) != 0);
    printf("system %d\n", WEXITSTATUS(system("exit 6")));
    FILE *lines = popen("printf 'a line\n'", "r");
    char *line = malloc(100);
    fgets(line, 100, lines);
    int closed = pclose(lines);
    printf("popen %d %s", closed, line);
    // With memory of its own, and with ours.
    char *stack = malloc(1 << 16);
    child = clone(on_clone, stack + (1 << 16), SIGCHLD, heap);
    code = ended(child);
    printf("clone %d %d", code, heap[0]);
    child = clone(on_clone, stack + (1 << 16), CLONE_VM | CLONE_VFORK | SIGCHLD, heap);
    code = ended(child);
    printf(" %d %d\n", code, heap[0]);
    child = syscall(SYS_fork);
    if (child == 0)
        _exit(heap[0] + 20);
    printf("call %d\n", ended(child));
    // `exec` that fails leaves all as it is; one in a child of a child.
    child = fork();
    if (child == 0) {
        execv(nowhere, words);
        heap[2] = 8;
        pid_t second = fork();
        if (second == 0) {
            words[2] = strdup("test $WORD = spawned && exit 4");
            execve("/bin/sh", words, names);
        }
        _exit(heap[2] + ended(second));
    }
    printf("exec %d\n", ended(child));
}

static void *executes(void *unused) {
    char *words[] = {strdup("sh"), strdup("-c"), strdup("echo from a thread; exit 9"), NULL};
    execv("/bin/sh", words);
    return NULL;
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    memory();
    threads();
    others();
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, executes, NULL);
        for (;;)
            bss[5]++;
    }
    printf("exec in a thread %d\n", ended(child));
    return 0;
}
