// Something for each view of a page: a list whose nodes have a part that is never read, and the
// three patterns of figure 3 of 003, one of them in a thread.
#include <memory>
#include <thread>
#include <vector>

struct Node {
    Node *next;
    long value;
    char unused[48];
};

[[gnu::noinline]] Node *push(Node *list, long value) { return new Node{list, value, {}}; }

[[gnu::noinline]] long walk(const Node *list) {
    long sum = 0;
    for (; list; list = list->next) sum += list->value;
    return sum;
}

[[gnu::noinline]] long in_a_loop(long i) {
    std::unique_ptr<long[]> row(new long[32]);
    for (long at = 0; at < 32; at++) row[at] = i + at;
    return row[31] - row[0];
}

[[gnu::noinline]] long grows() {
    std::vector<long> all;
    for (long i = 0; i < 20000; i++) all.push_back(i);
    return all.back();
}

[[gnu::noinline]] std::unique_ptr<int[]> idle(int value) {
    std::unique_ptr<int[]> all(new int[5000]);
    for (int at = 0; at < 1000; at++) all[at] = value;
    return all;
}

int main() {
    long sum = 0;
    Node *list = nullptr;
    for (long i = 0; i < 1000; i++) list = push(list, i);
    for (int i = 0; i < 20; i++) sum += walk(list);
    for (Node *next; list; list = next) {
        next = list->next;
        delete list;
    }
    std::unique_ptr<int[]> unused[40];
    for (int i = 0; i < 40; i++) unused[i] = idle(i);
    std::thread([&] {
        for (long i = 0; i < 200; i++) sum += in_a_loop(i);
    }).join();
    sum += grows();
    return sum == 0;
}
