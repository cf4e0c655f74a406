#include "shim/staging.hpp"

#include <string.h>

#include <new>

#include "base/log.hpp"
#include "platform/kept_memory.hpp"
#include "shim/mpi.hpp"

namespace stretto::shim {
namespace {

int code_of(const Status& status) {
  if (status.ok()) return MPI_SUCCESS;
  log(Level::error, "a buffer on a GPU: %s (CUDA error %d)", status.what, status.detail);
  return MPI_ERR_OTHER;
}

// Host memory that takes the bytes from the lowest to the highest of a buffer with gaps.
class Image {
 public:
  Image() = default;
  ~Image() {
    if (kept_) platform::give_back_kept(kept_);
  }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  int make(const Buffer& buffer) {
    Extent extent;
    if (!extent_of(*buffer.layout, buffer.count, &extent)) return MPI_ERR_OTHER;
    bytes_ = size_t(extent.highest - extent.lowest);
    device_ = const_cast<char*>(static_cast<const char*>(buffer.data)) + extent.lowest;
    kept_ = platform::take_kept(bytes_);
    if (kept_ == nullptr && !memory_.reserve(bytes_)) return MPI_ERR_NO_MEM;
    origin_ = begin() - extent.lowest;
    return MPI_SUCCESS;
  }
  char* begin() const { return kept_ ? kept_ : memory_.data(); }
  char* device() const { return device_; }  // where begin() is on the device
  char* origin() const { return origin_; }  // stands for the buffer's address
  size_t bytes() const { return bytes_; }

 private:
  char* kept_ = nullptr;
  Temporary memory_;
  size_t bytes_ = 0;
  char *device_ = nullptr, *origin_ = nullptr;
};

int load_with_gaps(const Buffer& from, void* bytes) {
  Image image;
  if (int code = image.make(from)) return code;
  if (int code = code_of(platform::copy_from_device(image.begin(), image.device(), image.bytes()))) return code;
  return pack(*from.layout, image.origin(), from.count, bytes);
}

// Which bytes of the image belong to elements: all ones unpacked into zeros.
int mark_elements(const Buffer& to, const Image& marks) {
  Temporary ones;
  if (!ones.reserve(to.bytes())) return MPI_ERR_NO_MEM;
  memset(ones.data(), 0xff, to.bytes());
  memset(marks.begin(), 0, marks.bytes());
  return unpack(*to.layout, ones.data(), to.count, marks.origin());
}

// The runs of ones among marks.
class MarkedRuns final : public platform::Runs {
 public:
  explicit MarkedRuns(const Image& marks) : begin_(marks.begin()), at_(begin_), end_(begin_ + marks.bytes()) {}
  platform::Run next() override {
    const char* first = find(at_, 0xff);
    at_ = find(first, 0);
    return {size_t(first - begin_), size_t(at_ - first)};
  }

 private:
  const char* find(const char* from, int mark) const {
    const void* found = from == end_ ? nullptr : memchr(from, mark, size_t(end_ - from));
    return found != nullptr ? static_cast<const char*>(found) : end_;
  }
  const char *begin_, *at_, *end_;
};

int store_with_gaps(const Buffer& to, const void* bytes) {
  Image image, marks;
  if (int code = image.make(to)) return code;
  if (int code = marks.make(to)) return code;
  if (int code = mark_elements(to, marks)) return code;
  if (int code = unpack(*to.layout, bytes, to.count, image.origin())) return code;
  MarkedRuns runs(marks);
  return code_of(platform::copy_runs_to_device(image.device(), image.begin(), runs));
}

}  // namespace

// Elements with gaps begin somewhere beside the buffer's address, which may be MPI_BOTTOM.
bool Buffer::on_device() const {
  if (platform::no_device_memory()) return false;
  Extent extent{};
  if (!layout->dense && !extent_of(*layout, 1, &extent)) return false;
  return platform::is_device(platform::ask_driver(static_cast<const char*>(data) + extent.lowest));
}

Room::~Room() {
  if (kept_) platform::give_back_kept(kept_);
  if (lender_) lender_->give_back(borrowed_, bytes_);
}

bool Room::reserve(size_t bytes, engine::Communicator& communicator) {
  bytes_ = bytes;
  data_ = small_;
  if (bytes <= sizeof small_) return true;
  if (!platform::no_device_memory()) kept_ = platform::take_kept(bytes);
  data_ = kept_ != nullptr ? kept_ : memory_.reserve(bytes) ? memory_.data() : nullptr;
  if (data_ != nullptr) return true;
  data_ = static_cast<char*>(communicator.borrow(bytes, &borrowed_));
  if (borrowed_ != 0) lender_ = &communicator;
  return data_ != nullptr;
}

ResultTypes::~ResultTypes() {
  while (count_ > 0) mpi().Type_free(&types_[--count_]);
}

// Dense elements are bytes, for which no datatype is asked.
int ResultTypes::keep(Layout& layout) {
  if (layout.dense || layout.named || !engine::Operation::current()) return MPI_SUCCESS;
  if (!types_) types_.reset(new (std::nothrow) MPI_Datatype[size_t(most_)]);
  if (!types_) return MPI_ERR_NO_MEM;
  if (int code = copy_type(layout.type, &types_[count_])) return code;
  layout.type = types_[count_++];
  return MPI_SUCCESS;
}

int load(const Buffer& from, void* bytes) {
  bool on_device = from.on_device();
  if (!from.layout->dense) return on_device ? load_with_gaps(from, bytes) : pack(*from.layout, from.data, from.count, bytes);
  if (on_device) return code_of(platform::copy_from_device(bytes, from.data, from.bytes()));
  memcpy(bytes, from.data, from.bytes());
  return MPI_SUCCESS;
}

namespace {

int store_all(const Buffer& to, const void* bytes) {
  void* data = const_cast<void*>(to.data);
  bool on_device = to.on_device();
  if (!to.layout->dense) return on_device ? store_with_gaps(to, bytes) : unpack(*to.layout, bytes, to.count, data);
  if (on_device) return code_of(platform::copy_to_device(data, bytes, to.bytes()));
  memcpy(data, bytes, to.bytes());
  return MPI_SUCCESS;
}

// The first bytes of an element.
int store_beginning(const Buffer& element, const void* bytes, size_t came) {
  Temporary whole;
  if (!whole.reserve(element.bytes())) return MPI_ERR_NO_MEM;
  if (int code = load(element, whole.data())) return code;
  memcpy(whole.data(), bytes, came);
  return store_all(element, whole.data());
}

}  // namespace

int store(const Buffer& to, const void* bytes, size_t came) {
  if (came >= to.bytes()) return store_all(to, bytes);
  const size_t whole = came / to.layout->size, begun = came % to.layout->size;
  if (whole > 0)
    if (int code = store_all({to.data, whole, to.layout}, bytes)) return code;
  if (begun == 0) return MPI_SUCCESS;
  const char* element = static_cast<const char*>(to.data) + ptrdiff_t(whole) * ptrdiff_t(to.layout->extent);
  return store_beginning({element, 1, to.layout}, static_cast<const char*>(bytes) + came - begun, begun);
}

}  // namespace stretto::shim
