// Exceptions through code whose memory is traced: one line a case.
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

static std::atomic<long> destroyed;

struct Noted {
    std::vector<int> *own = new std::vector<int>(10, 3);
    ~Noted() {
        destroyed += own->at(5);
        delete own;
    }
};

struct Own : std::runtime_error {
    std::map<int, std::string> details;
    Own(int depth) : std::runtime_error("own " + std::to_string(depth)) { details[depth] = "deep"; }
};

struct Base {
    virtual int deeper(int depth, int *heap) = 0;
    virtual ~Base() = default;
};

// Virtual calls are calls through memory; the throw comes from below them.
struct Deep : Base {
    int deeper(int depth, int *heap) override {
        Noted noted;
        heap[depth % 50]++;
        if (depth == 0)
            throw Own(heap[7]);
        Base *volatile base = this;
        return base->deeper(depth - 1, heap) + heap[3];
    }
};

static std::string caught(int depth) {
    auto heap = std::make_unique<int[]>(50);
    std::unique_ptr<Base> deep = std::make_unique<Deep>();
    try {
        return std::to_string(deep->deeper(depth, heap.get()));
    } catch (const Own &own) {
        return own.what() + std::string(" ") + own.details.begin()->second;
    }
}

static std::string rethrown() {
    std::string text;
    try {
        try {
            throw std::out_of_range("first");
        } catch (const std::logic_error &error) {
            text += error.what();
            try {
                throw Own(2);
            } catch (...) {
                auto kept = std::current_exception();
                text += " kept";
                std::rethrow_exception(kept);
            }
        }
    } catch (const std::exception &error) {
        text += std::string(" ") + error.what();
    }
    try {
        std::vector<int>().at(3);
    } catch (const std::out_of_range &) {
        text += " library";
    }
    try {
        volatile std::size_t huge = std::size_t(1) << 62;
        char *volatile never = new char[huge];
        delete[] never;
    } catch (const std::bad_alloc &) {
        text += " memory";
    }
    return text;
}

// Where compilers allow that instructions throw, a handler of a signal may.
static char *closed;
static void throws(int, siginfo_t *info, void *) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    throw static_cast<int>(static_cast<char *>(info->si_addr) - closed);
}

__attribute__((noinline)) static int access(volatile char *at) {
    Noted noted;
    return at[5];
}

static int faulted(char *at) {
    try {
        return access(at);
    } catch (int offset) {
        return 1000 + offset;
    }
}

static std::jmp_buf place;
__attribute__((noinline)) static void jumps(int depth, int *heap) {
    heap[depth]++;
    if (depth == 0)
        std::longjmp(place, heap[1] + 5);
    jumps(depth - 1, heap);
}

static void terminated() {
    std::puts("terminated");
    std::fflush(stdout);
    std::_Exit(0);
}

int main() {
    std::setvbuf(stdout, nullptr, _IONBF, 0);
    std::printf("caught %s\n", caught(60).c_str());
    std::printf("destroyed %ld\n", destroyed.load());
    std::printf("rethrown %s\n", rethrown().c_str());
    std::vector<std::future<std::string>> all;
    for (int i = 0; i < 4; i++)
        all.push_back(std::async(std::launch::async, [i] {
            std::string last;
            for (int turn = 0; turn < 20; turn++)
                last = caught(turn + i);
            return last;
        }));
    for (auto &one : all)
        std::printf("thread %s\n", one.get().c_str());
    auto future = std::async(std::launch::async, []() -> int { throw Own(9); });
    try {
        future.get();
    } catch (const Own &own) {
        std::printf("from a thread %s\n", own.what());
    }
    struct sigaction action = {};
    action.sa_sigaction = throws;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    closed = static_cast<char *>(
        mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    closed[5] = 4;
    std::printf("fault %d", faulted(closed));
    mprotect(closed, 4096, PROT_NONE);
    std::printf(" %d %d\n", faulted(closed), faulted(closed + 1));
    std::printf("destroyed %ld\n", destroyed.load());
    auto *heap = new int[20]();
    if (int got = setjmp(place))
        std::printf("jumped %d %d\n", got, heap[19]);
    else
        jumps(19, heap);
    std::set_terminate(terminated);
    std::thread([] { throw 5; }).join();
    return 1;
}
