// Sleeping on a 32-bit word that may live in memory shared between processes.
#pragma once
#include <atomic>
#include <cstdint>

namespace stretto::platform {

// Sleeps while *word == expected, until woken, a signal, or timeout_ns has passed. Spurious returns are allowed.
// Works (by sleeping in short naps) where the futex system call is refused.
void futex_wait(const std::atomic<uint32_t>* word, uint32_t expected, uint64_t timeout_ns);

// Wakes every sleeper on the word, in any process.
void futex_wake_all(const std::atomic<uint32_t>* word);

void yield();  // gives the CPU to another runnable thread

void nap(uint64_t ns);  // leaves it to others for so long, and some 50 us that the system adds

}  // namespace stretto::platform
