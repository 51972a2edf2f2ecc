// `fork` where no file in memory can be made: the kernel refuses it, or there is no descriptor.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int global = 1;
static char large[1 << 20];

static void refuse(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        perror("seccomp");
}

int main(int count, char **words) {
    int *heap = malloc(4096), *shared = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *heap = 2;
    large[777] = 3;
    if (count > 1 && !strcmp(words[1], "seccomp"))
        refuse();
    else
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
    for (int turn = 0; turn < 3; turn++) {
        int child = fork(), status;
        if (child < 0)
            return printf("fork: %s\n", strerror(errno)), 1;
        if (!child) {
            int sum = global + *heap + large[777];
            char *more = malloc(200000);
            memset(more, 1, 200000);
            *heap = global = large[777] = *shared = 100 + turn;
            // And one of its own.
            int second = fork();
            if (!second)
                _exit(*heap == 100 + turn && more[199999] == 1 ? 5 : 6);
            waitpid(second, &status, 0);
            _exit(sum + WEXITSTATUS(status));
        }
        waitpid(child, &status, 0);
        printf("child %d, here %d %d %d, shared %d\n", WEXITSTATUS(status), global, *heap,
               large[777], *shared);
        *heap += 10;
    }
    fflush(0);
    int child = fork();
    if (!child) {
        execl("/bin/echo", "echo", "hi", (char *)0);
        _exit(9);
    }
    waitpid(child, &child, 0);
    return WEXITSTATUS(child);
}
