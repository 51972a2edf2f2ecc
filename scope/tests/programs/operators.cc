// One block by each operator `new`, of a size of its own; and as many deleted.
#include <cstdlib>
#include <new>

struct alignas(128) Wide {
    char bytes[1280];
};

struct Throws {
    char bytes[3001];
    __attribute__((noinline)) Throws() { throw 1; }
};

template <class T> static T *keep(T *block) {
    *reinterpret_cast<volatile char *>(block) = 1;
    return block;
}

int main() {
    keep(new char[1001]);
    keep(new (std::nothrow) char[1002]);
    keep(static_cast<char *>(::operator new(1003)));
    keep(new Wide);
    delete[] keep(new char[2001]);
    delete keep(new Wide);
    ::operator delete(keep(static_cast<char *>(::operator new(2003))));
    try {
        new Throws;
    } catch (int thrown) {
        return thrown - 1;
    }
    return 1;
}
