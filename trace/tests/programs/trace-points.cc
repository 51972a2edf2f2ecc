// A function that is called from many places, left by exceptions, and returns to before a call.
#include <cstdio>

static volatile int inside, outside;
extern "C" {
__attribute__((noinline, noipa)) void f(int fails) {
    inside++;
    if (fails)
        throw fails;
}
__attribute__((noinline, noipa)) void g() { throw 1; }
}

#define TEN(x) x x x x x x x x x x

int main() {
    try {
        f(0);
        g();
    } catch (int) {
        puts("caught");
    }
    TEN(TEN(f(0); outside++;))
    try {
        f(2);
    } catch (int) {
        puts("left");
    }
    f(0);
    for (int turn = 0; turn < 1000; turn++)
        outside++;
    fprintf(stderr, "inside %p outside %p\n", (void *)&inside, (void *)&outside);
}
