// A map of strings, as the library of C++ has it.
#include <cstdio>
#include <map>
#include <string>

extern "C" char __executable_start, etext;

int main() {
    auto *all = new std::map<int, std::string>;
    for (int i = 0; i < 200; i++)
        (*all)[i * 37 % 199] = std::to_string(i) + " is longer than what fits in place";
    unsigned long sum = 0;
    for (auto &one : *all)
        sum += one.first * one.second.size() + one.second[0];
    std::printf("text %lu %lu\n", (unsigned long)&__executable_start, (unsigned long)&etext);
    for (auto &one : *all)
        std::printf("chunk %lu %lu\n", (unsigned long)&one - 32, sizeof one + 32);
    std::printf("result %lu\n", sum);
}
