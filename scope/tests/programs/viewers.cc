// A list that is walked, vectors that grow, strings that are kept too long: something for every
// number that an export has.
#include <string>
#include <vector>

#ifndef ROUNDS
#define ROUNDS 50
#endif
#ifndef NODES
#define NODES 5000
#endif

struct Node {
    Node *next;
    long value;
    char unused[48];
};

template <typename T> [[gnu::noinline]] T *keep(T value) { return new T(value); }

[[gnu::noinline]] long walk(const Node *list) {
    long sum = 0;
    for (; list; list = list->next) sum += list->value;
    return sum;
}

int main() {
    Node *list = nullptr;
    for (long i = 0; i < NODES; i++) list = keep(Node{list, i, {}});
    std::vector<std::string> texts;
    for (int i = 0; i < 500; i++) texts.push_back(std::string(40 + i, 'x'));
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) sum += walk(list);
    while (list) {
        Node *next = list->next;
        delete list;
        list = next;
    }
    keep(std::string("never freed, and longer than what fits into the object itself"));
    return sum == ROUNDS * (NODES - 1L) * NODES / 2 ? 0 : 1;
}
