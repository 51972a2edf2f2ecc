// `operator new` under rules and the learner: what it throws, and who frees what it gives. With
// -DREPLACED, the program has operators of its own, of which the other forms are the library's. With
// -DREPLACED -DLIBRARY, it is a library that has nothing else.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef REPLACED
static long alive;
// A header, without which `operator delete` ends the program.
void *operator new(std::size_t bytes) {
    auto *header = static_cast<std::uint64_t *>(std::malloc(bytes + 16));
    if (!header)
        throw std::bad_alloc();
    header[0] = 0x0123456789abcdef;
    alive++;
    return header + 2;
}

void operator delete(void *object) noexcept {
    if (!object)
        return;
    auto *header = static_cast<std::uint64_t *>(object) - 2;
    if (header[0] != 0x0123456789abcdef)
        std::abort();
    alive--;
    std::free(header);
}

void operator delete(void *object, std::size_t) noexcept { operator delete(object); }
#endif

#ifndef LIBRARY
struct Node {
    std::unique_ptr<Node> next;
    std::uint64_t value;
};

[[gnu::noinline]] static std::unique_ptr<Node> push(std::unique_ptr<Node> next, std::uint64_t value) {
    return std::unique_ptr<Node>(new Node{std::move(next), value});
}

static std::uint64_t work() {
    std::unique_ptr<Node> head;
    std::uint64_t sum = 0;
    for (int i = 0; i < 20000; i++) {
        head = push(std::move(head), i);
        std::unique_ptr<std::string[]> strings(new std::string[2]);
        strings[1] = "a string that is on the heap " + std::to_string(i);
        std::unique_ptr<std::uint64_t> other(new (std::nothrow) std::uint64_t(i));
        sum += strings[1].size() + *other;
    }
    for (; head; head = std::move(head->next))
        sum = sum * 3 + head->value;
    return sum;
}

#if !defined REPLACED && !defined NO_FAILURES
// Not known to the compiler, and more than there is.
static volatile std::size_t too_much = std::size_t(1) << 62;

struct Failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <typename Error, typename Call> static void expect(const char *what, Call call) {
    int destroyed = 0;
    struct Guard {
        int &destroyed;
        ~Guard() { destroyed++; }
    };
    for (int i = 0; i < 3; i++) {
        try {
            Guard guard{destroyed};
            call();
            std::printf("%s: no exception\n", what);
        } catch (const Error &error) {
            std::printf("%s: %s, %d destroyed\n", what, error.what(), destroyed);
        }
    }
}

static void exceptions() {
    expect<std::bad_alloc>("new", [] { return operator new(too_much); });
    expect<std::bad_alloc>("new[]", [] { return operator new[](too_much); });
    expect<std::bad_alloc>("vector", [] { return std::vector<char>(too_much).size(); });
    std::printf("nothrow: %p %p\n", operator new(too_much, std::nothrow),
                operator new[](too_much, std::nothrow));
    std::set_new_handler([] { throw Failed("the handler's"); });
    try {
        std::printf("handler: %p\n", operator new(too_much));
    } catch (const std::exception &error) {
        std::printf("handler: %s\n", error.what());
    }
    static int calls;
    std::set_new_handler([] {
        if (++calls == 3)
            std::set_new_handler(nullptr);
    });
    expect<std::bad_alloc>("handler", [] { return operator new(too_much); });
    std::printf("handler: called %d times\n", calls);
}
#endif

int main() {
#ifdef REPLACED
    std::printf("replaced: %llu", static_cast<unsigned long long>(work()));
    std::printf(", %ld alive\n", alive);
#else
    std::printf("work: %llu\n", static_cast<unsigned long long>(work()));
#ifndef NO_FAILURES
    exceptions();
#endif
#endif
}
#endif
