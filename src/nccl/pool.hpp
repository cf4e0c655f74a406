// Objects whose addresses NCCL holds without saying until when: they are never freed, and used again as late as possible.
#pragma once
#include <cstdint>
#include <mutex>
#include <new>

namespace stretto::nccl {

template <typename T>
class Pool {
 public:
  // Null where `most` are in use or memory is short.
  T* take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (free_count_ < rest && total_ < most) {
      T* made = new (std::nothrow) T;
      total_ += made != nullptr;
      if (made) return made;
    }
    if (!first_) return nullptr;
    T* again = first_;
    first_ = static_cast<T*>(again->next_free);
    if (!first_) last_ = nullptr;
    --free_count_;
    *again = T{};
    return again;
  }

  void give(T* object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    object->next_free = nullptr;
    if (last_)
      last_->next_free = object;
    else
      first_ = object;
    last_ = object;
    ++free_count_;
  }

 private:
  static constexpr uint32_t rest = 1024;  // so many others come before an object is used again
  static constexpr uint32_t most = 1u << 17;
  std::mutex mutex_;
  T* first_ = nullptr;
  T* last_ = nullptr;
  uint32_t free_count_ = 0, total_ = 0;
};

}  // namespace stretto::nccl
