// System calls that are given memory that is traced, also across the border of two mappings: one
// line a case.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Memory of the heap, of zeros.
static void *new(size_t len) {
    return calloc(1, len);
}

static int sum(const void *bytes, int len) {
    int sum = 0;
    for (int i = 0; i < len; i++)
        sum = sum * 31 + ((const unsigned char *)bytes)[i];
    return sum;
}

static void messages(void) {
    int *pair = new(8);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    enum { COUNT = 4 };
    struct mmsghdr *out = new(COUNT * sizeof *out), *in = new(COUNT * sizeof *in);
    for (int i = 0; i < COUNT; i++) {
        struct iovec *parts = new(2 * sizeof *parts), *whole = new(sizeof *whole);
        for (int at = 0; at < 2; at++) {
            parts[at].iov_base = strdup(at ? "world" : "hello");
            parts[at].iov_len = 3 + at + i % 2;
        }
        out[i].msg_hdr.msg_iov = parts;
        out[i].msg_hdr.msg_iovlen = 2;
        whole->iov_base = new(20);
        whole->iov_len = 20;
        in[i].msg_hdr.msg_iov = whole;
        in[i].msg_hdr.msg_iovlen = 1;
    }
    int sent = sendmmsg(pair[0], out, COUNT, 0);
    printf("sendmmsg %d: %d %d\n", sent, out[0].msg_len, out[3].msg_len);
    struct timespec *when = new(sizeof *when);
    when->tv_sec = 5;
    int got = recvmmsg(pair[1], in, COUNT, MSG_WAITFORONE, when);
    printf("recvmmsg %d:", got);
    for (int i = 0; i < COUNT; i++)
        printf(" %d %s", in[i].msg_len, (char *)in[i].msg_hdr.msg_iov->iov_base);
    printf("\n");
    // A descriptor and a name, by messages.
    struct msghdr *message = new(sizeof *message);
    struct iovec *part = new(sizeof *part);
    part->iov_base = strdup("x");
    part->iov_len = 1;
    message->msg_iov = part;
    message->msg_iovlen = 1;
    message->msg_control = new(CMSG_SPACE(4));
    message->msg_controllen = CMSG_SPACE(4);
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    *control = (struct cmsghdr){CMSG_LEN(4), SOL_SOCKET, SCM_RIGHTS};
    int *pipes = new(8);
    pipe(pipes);
    memcpy(CMSG_DATA(control), &pipes[0], 4);
    printf("sendmsg %zd\n", sendmsg(pair[0], message, 0));
    memset(message->msg_control, 0, CMSG_SPACE(4));
    message->msg_name = new(100);
    message->msg_namelen = 100;
    ssize_t len = recvmsg(pair[1], message, MSG_CMSG_CLOEXEC);
    int passed = *(int *)CMSG_DATA(CMSG_FIRSTHDR(message));
    write(pipes[1], "through", 8);
    char *text = new(8);
    read(passed, text, 8);
    printf("recvmsg %zd %d %zu %s\n", len, message->msg_namelen, message->msg_controllen, text);
}

static void vectors(void) {
    int *pair = new(8);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    struct iovec *parts = new(5 * sizeof *parts);
    static char in_data[4] = "abc", in_bss[4];
    char in_stack[4] = "ghi", in_code[] = "";
    parts[0] = (struct iovec){in_data, 3};
    parts[1] = (struct iovec){strdup("def"), 3};
    parts[2] = (struct iovec){in_stack, 3};
    parts[3] = (struct iovec){"jkl", 3};
    parts[4] = (struct iovec){NULL, 0};
    printf("writev %zd\n", writev(pair[0], parts, 5));
    char *heap = new(20);
    parts[0] = (struct iovec){in_bss, 2};
    parts[1] = (struct iovec){heap, 5};
    parts[2] = (struct iovec){in_stack, 3};
    parts[3] = (struct iovec){heap + 5, 2};
    ssize_t got = readv(pair[1], parts, 4);
    printf("readv %zd: %.2s %s %.3s\n", got, in_bss, heap, in_stack);
    parts[1].iov_base = (void *)8;
    errno = 0;
    ssize_t failed = writev(pair[0], parts + 1, 1);
    printf("bad %zd %d\n", failed, errno);
    // Files.
    int file = memfd_create("file", 0);
    parts[0] = (struct iovec){strdup("0123"), 4};
    parts[1] = (struct iovec){strdup("4567"), 4};
    printf("pwritev %zd", pwritev(file, parts, 2, 3));
    printf(" %zd", pwritev2(file, parts, 2, 8, 0));
    parts[0].iov_base = new(4);
    printf(" %zd", preadv(file, parts, 2, 5));
    printf(" %.4s %.4s\n", (char *)parts[0].iov_base, (char *)parts[1].iov_base);
    off_t *from = new(sizeof *from);
    *from = 2;
    got = sendfile(pair[0], file, from, 6);
    printf("sendfile %zd %ld %zd\n", got, *from, recv(pair[1], heap, 20, 0));
    loff_t *at = new(sizeof *at);
    *at = 4;
    int *pipes = new(8);
    pipe2(pipes, O_NONBLOCK);
    got = splice(file, at, pipes[1], NULL, 5, 0);
    printf("splice %zd %ld", got, (long)*at);
    parts[0] = (struct iovec){strdup("vmsplice"), 8};
    printf(" %zd", vmsplice(pipes[1], parts, 1, 0));
    got = read(pipes[0], heap, 20);
    printf(" %zd %.12s\n", got, heap);
    parts[0] = (struct iovec){heap, 5};
    parts[1] = (struct iovec){in_bss, 4};
    printf("other process %zd\n", process_vm_readv(getpid(), parts, 1, parts + 1, 1, 0));
}

// Memory of two mappings, one of which may only be read, or is a file's.
static void borders(void) {
    char *at = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file = memfd_create("file", 0);
    ftruncate(file, 4096);
    mmap(at + 4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    for (int i = 0; i < 4 * 4096; i++)
        at[i] = i * 7;
    int *pipes = new(8);
    pipe(pipes);
    printf("border %zd", write(pipes[1], at + 4000, 5000));
    memset(at, 0, 4 * 4096);
    printf(" %zd", read(pipes[0], at + 4001, 5000));
    printf(" %x\n", sum(at, 4 * 4096));
    mprotect(at + 4096, 4096, PROT_NONE);
    errno = 0;
    ssize_t got = write(pipes[1], at + 4000, 5000);
    printf("closed %zd %d\n", got, errno);
    mprotect(at + 4096, 4096, PROT_READ | PROT_WRITE);
    strcpy(at + 4090, "/dev/null");
    printf("path %d", access(at + 4090, F_OK));
    struct stat *info = (struct stat *)(at + 8192 - 72);
    got = stat(at + 4090, info);
    printf(" %zd %d\n", got, S_ISCHR(info->st_mode));
    struct iovec *parts = (struct iovec *)(at + 2 * 4096 - 24);
    parts[0] = (struct iovec){at + 4090, 9};
    parts[1] = (struct iovec){at + 4090, 3};
    printf("array %zd", writev(pipes[1], parts, 2));
    printf(" %zd\n", read(pipes[0], at, 112));
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT;
    char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    printf("low %zd", write(pipes[1], strcpy(low, "low"), 4));
    got = read(pipes[0], at, 100);
    printf(" %zd %s\n", got, at);
}

static void waits(void) {
    int *pipes = new(8);
    pipe(pipes);
    struct pollfd *polled = new(2 * sizeof *polled);
    polled[0] = (struct pollfd){pipes[0], POLLIN};
    polled[1] = (struct pollfd){pipes[1], POLLOUT};
    int got = poll(polled, 2, 0);
    printf("poll %d %d %d\n", got, polled[0].revents, polled[1].revents);
    write(pipes[1], "x", 1);
    struct timespec *when = new(sizeof *when);
    sigset_t *set = new(sizeof *set);
    sigaddset(set, SIGSEGV);
    got = ppoll(polled, 2, when, set);
    printf("ppoll %d %d\n", got, polled[0].revents);
    fd_set *read_set = new(sizeof *read_set), *write_set = new(sizeof *write_set);
    FD_SET(pipes[0], read_set);
    FD_SET(pipes[1], write_set);
    struct timeval *until = new(sizeof *until);
    got = select(pipes[1] + 1, read_set, write_set, NULL, until);
    printf("select %d %d %d\n", got, FD_ISSET(pipes[0], read_set), FD_ISSET(pipes[1], write_set));
    got = pselect(pipes[1] + 1, read_set, NULL, write_set, when, set);
    printf("pselect %d %d\n", got, FD_ISSET(pipes[0], read_set));
    int epoll = epoll_create1(0);
    struct epoll_event *events = new(3 * sizeof *events);
    events[0] = (struct epoll_event){EPOLLIN, {.u64 = 0x123456789abcdef}};
    int added = epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &events[0]);
    memset(events, 0, 3 * sizeof *events);
    got = epoll_wait(epoll, events + 1, 2, -1);
    printf("epoll %d %d %lx", added, got, (long)events[1].data.u64);
    printf(" %d\n", epoll_pwait(epoll, events, 2, 0, set));
    int event = eventfd(0, 0);
    unsigned long *value = new(8);
    *value = 5;
    write(event, value, 8);
    *value = 0;
    read(event, value, 8);
    printf("eventfd %lu\n", *value);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec *times = new(2 * sizeof *times);
    times->it_value.tv_nsec = 1000;
    timerfd_settime(timer, 0, times, times + 1);
    read(timer, value, 8);
    printf("timerfd %d %d\n", *value >= 1, timerfd_gettime(timer, times));
}

static void *wakes(void *word) {
    int *at = word;
    for (int i = 0; i < 100; i++) {
        while (__atomic_load_n(at, __ATOMIC_SEQ_CST) != 2 * i + 1)
            syscall(SYS_futex, at, FUTEX_WAIT, 2 * i, NULL, NULL, 0);
        __atomic_store_n(at, 2 * i + 2, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, at, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
    return NULL;
}

static void futexes(void) {
    int *word = new(8);
    pthread_t thread;
    pthread_create(&thread, NULL, wakes, word);
    for (int i = 0; i < 100; i++) {
        __atomic_store_n(word, 2 * i + 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
        while (__atomic_load_n(word, __ATOMIC_SEQ_CST) != 2 * i + 2)
            syscall(SYS_futex, word, FUTEX_WAIT, 2 * i + 1, NULL, NULL, 0);
    }
    pthread_join(thread, NULL);
    struct timespec *when = new(sizeof *when);
    when->tv_nsec = 1000;
    errno = 0;
    long got = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, *word, when, NULL, 0);
    printf("futex %d %ld %d", *word, got, errno);
    got = syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, word + 1, *word);
    printf(" %ld\n", got);
}

static void others(void) {
    int *number = new(4), *pipes = new(8);
    pipe(pipes);
    write(pipes[1], "12345", 5);
    ssize_t got = ioctl(pipes[0], FIONREAD, number);
    printf("ioctl %zd %d\n", got, *number);
    unsigned char *random = new(64);
    int seen = 0;
    got = getrandom(random, 64, 0);
    for (int i = 0; i < 64; i++)
        seen |= random[i];
    printf("getrandom %zd %d\n", got, seen > 0);
    struct utsname *name = new(sizeof *name);
    got = uname(name);
    printf("uname %zd %s\n", got, name->sysname);
    struct rlimit *limit = new(2 * sizeof *limit);
    got = getrlimit(RLIMIT_NOFILE, limit);
    printf("limits %zd %d", got, limit->rlim_cur > 0);
    printf(" %d\n", prlimit(0, RLIMIT_STACK, NULL, limit + 1));
    struct rusage *usage = new(sizeof *usage);
    got = getrusage(RUSAGE_SELF, usage);
    printf("usage %zd %d\n", got, usage->ru_maxrss > 0);
    struct sysinfo *info = new(sizeof *info);
    struct tms *spent = new(sizeof *spent);
    got = sysinfo(info);
    printf("machine %zd %d %d\n", got, info->totalram > 0, times(spent) != -1);
    struct statfs *files = new(sizeof *files);
    struct stat *file = new(sizeof *file);
    struct statx *more = new(sizeof *more);
    char *root = strdup("/"), *here = new(5000), *self = strdup("/proc/self/exe");
    printf("files %d %d %d\n", statfs(root, files), stat(root, file),
           statx(AT_FDCWD, root, 0, STATX_BASIC_STATS, more));
    printf("inodes %d %d %d\n", file->st_ino == more->stx_ino, getcwd(here, 5000) == here,
           readlink(self, here, 5000) > 0);
    int folder = open(root, O_RDONLY | O_DIRECTORY);
    printf("folder %d\n", syscall(SYS_getdents64, folder, here, 5000) > 0);
    int *option = new(4), *len = new(4), *pair = new(8);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    *len = 4;
    got = getsockopt(pair[0], SOL_SOCKET, SO_TYPE, option, len);
    printf("socket %zd %d %d", got, *option, *len);
    struct sockaddr_un *address = new(sizeof *address);
    *len = sizeof *address;
    got = getsockname(pair[0], (struct sockaddr *)address, len);
    printf(" %zd %d", got, *len);
    *option = 1;
    printf(" %d\n", setsockopt(pair[0], SOL_SOCKET, SO_KEEPALIVE, option, 4));
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in *place = new(2 * sizeof *place);
    place->sin_family = AF_INET;
    place->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int bound = bind(server, (struct sockaddr *)place, sizeof *place) | listen(server, 1);
    *len = sizeof *place;
    bound |= getsockname(server, (struct sockaddr *)place, len);
    bound |= connect(client, (struct sockaddr *)place, *len);
    int accepted = accept(server, (struct sockaddr *)(place + 1), len);
    printf("internet %d %d %d %d\n", bound, accepted > 0, *len, place[1].sin_family == AF_INET);
    cpu_set_t *processors = new(sizeof *processors);
    got = syscall(SYS_sched_getaffinity, 0, sizeof *processors, processors);
    printf("processors %d %d\n", got > 0, CPU_COUNT(processors) > 0);
    pid_t child = fork();
    if (child == 0)
        _exit(5);
    int *status = new(4);
    got = wait4(child, status, 0, usage);
    printf("wait4 %d %d", got == child, WEXITSTATUS(*status));
    child = fork();
    if (child == 0)
        _exit(6);
    siginfo_t *ended = new(sizeof *ended);
    printf(" waitid %d", waitid(P_PID, child, ended, WEXITED));
    printf(" %d %d\n", ended->si_pid == child, ended->si_status);
    errno = 0;
    got = read(pipes[0], (void *)16, 5);
    printf("bad %zd %d\n", got, errno);
}

// Without a system call: the kernel's code in the process writes.
static void clocks(void) {
    struct timespec *times = new(4 * sizeof *times);
    struct timeval *time_of_day = new(sizeof *time_of_day);
    struct timezone *zone = new(sizeof *zone);
    time_t *now = new(sizeof *now);
    unsigned *processor = new(8);
    for (int i = 0; i < 4; i++) {
        int clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME};
        int got = clock_gettime(clocks[i], &times[i]);
        printf("clock %d %d\n", got, times[i].tv_sec > 0);
    }
    int got = gettimeofday(time_of_day, zone);
    printf("day %d %d\n", got, time_of_day->tv_sec >= times[0].tv_sec);
    time_t told = time(now);
    // `time` reads a coarse clock, which may be a tick, and so a second, behind.
    printf("time %d\n", told == *now && *now + 1 >= times[0].tv_sec);
    got = clock_getres(CLOCK_REALTIME, times);
    printf("resolution %d %ld\n", got, times->tv_nsec);
    printf("processor %d\n", getcpu(processor, processor + 1));
    times->tv_nsec = 1000;
    times->tv_sec = 0;
    printf("sleep %d", nanosleep(times, times + 1));
    printf(" %d\n", clock_nanosleep(CLOCK_MONOTONIC, 0, times, times + 1));
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    messages();
    vectors();
    borders();
    waits();
    futexes();
    others();
    clocks();
    return 0;
}
