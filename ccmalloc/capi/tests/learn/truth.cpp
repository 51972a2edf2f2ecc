// As `truth.c`, with the containers of the C++ library: `truth STRUCTURE`.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace {
constexpr int nodes = 120000;

std::uint64_t next_random() {
    static std::uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

// Objects of 32 bytes that belong to nobody.
void allocate_stranger() {
    static std::vector<std::unique_ptr<char[]>> strangers(1024);
    strangers[next_random() % 1024] = std::make_unique<char[]>(32);
}

// Nodes of 32 bytes.
std::uint64_t list() {
    std::list<std::pair<std::uint64_t, std::uint64_t>> list;
    for (int i = 0; i < nodes; i++) {
        list.emplace_back(next_random(), i);
        allocate_stranger();
    }
    std::uint64_t sum = 0;
    for (auto &[key, value] : list)
        sum = sum * 7 + key + value;
    return sum;
}

// Nodes of 48 bytes: two do not fit a block, and nothing is proposed.
std::uint64_t map() {
    std::map<std::uint64_t, std::uint64_t> map;
    for (int i = 0; i < nodes; i++)
        map[next_random()] = i;
    std::uint64_t sum = 0;
    for (auto &[key, value] : map)
        sum = sum * 7 + key + value;
    return sum;
}

// Nodes of 96 bytes, and strings of 38.
std::uint64_t map_of_strings() {
    std::map<std::string, std::string> map;
    for (int i = 0; i < nodes / 4; i++) {
        std::string number = std::to_string(1000000000 + next_random() % 1000000000);
        map["a long key with the number " + number] = "a long value, the number " + number;
    }
    std::uint64_t sum = 0;
    for (auto &[key, value] : map)
        sum = sum * 7 + key.size() + value.back();
    return sum;
}

// Nodes of 24 bytes in one list, which all buckets share.
std::uint64_t unordered() {
    std::unordered_map<std::uint64_t, std::uint64_t> map;
    map.reserve(nodes / 8);
    map.max_load_factor(16);
    for (int i = 0; i < nodes; i++)
        map[next_random()] = i;
    std::uint64_t sum = 0;
    for (auto &[key, value] : map)
        sum += key ^ value;
    return sum;
}

// 32 bytes.
struct Tree {
    std::unique_ptr<Tree> left, right;
    std::uint64_t key, value;
};

[[gnu::noinline]] void insert(std::unique_ptr<Tree> *place, std::uint64_t key) {
    while (*place)
        place = key < (*place)->key ? &(*place)->left : &(*place)->right;
    *place = std::unique_ptr<Tree>(new Tree{nullptr, nullptr, key, key});
}

std::uint64_t sum_tree(const Tree *at) {
    return at ? at->key + 3 * sum_tree(at->left.get()) + 5 * sum_tree(at->right.get()) : 1;
}

std::uint64_t tree() {
    std::unique_ptr<Tree> root;
    for (int i = 0; i < nodes; i++)
        insert(&root, next_random());
    return sum_tree(root.get());
}

// From here on: nothing is to be proposed.
std::uint64_t strings() {
    std::vector<std::string> texts;
    for (int i = 0; i < nodes; i++)
        texts.push_back("a string that is on the heap, number " + std::to_string(next_random()));
    std::uint64_t sum = 0;
    for (auto &text : texts)
        sum = sum * 7 + text.back();
    return sum;
}

std::uint64_t temporaries() {
    std::uint64_t sum = 0;
    for (int i = 0; i < nodes * 4; i++) {
        std::list<std::string> list{"a string that is on the heap", "and another one, longer"};
        sum += list.back().size() + list.front().size();
    }
    return sum;
}

std::uint64_t arena() {
    std::pmr::monotonic_buffer_resource memory;
    std::pmr::map<std::uint64_t, std::uint64_t> map(&memory);
    for (int i = 0; i < nodes; i++)
        map[next_random()] = i;
    std::uint64_t sum = 0;
    for (auto &[key, value] : map)
        sum = sum * 7 + key + value;
    return sum;
}
}  // namespace

int main(int count, char **arguments) {
    constexpr struct { const char *name; std::uint64_t (*run)(); } modes[] = {
        {"list", list}, {"map", map}, {"map_of_strings", map_of_strings},
        {"unordered", unordered}, {"tree", tree}, {"strings", strings},
        {"temporaries", temporaries}, {"arena", arena},
    };
    for (auto &mode : modes) {
        if (count == 2 && !std::strcmp(arguments[1], mode.name)) {
            std::printf("%llu\n", static_cast<unsigned long long>(mode.run()));
            return 0;
        }
    }
    return 2;
}
