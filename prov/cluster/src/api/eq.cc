#include "api/eq.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "api/wait.h"

namespace cluster::api {
namespace {

constexpr std::size_t kEventsMin = 1024;  ///< capacity, even if the attributes ask for less
constexpr std::size_t kEventBytesMax = 4096;

ssize_t eq_read_error(fid_eq*, fi_eq_err_entry*, std::uint64_t) noexcept { return -FI_EAGAIN; }

const char* eq_error_text(fid_eq*, int, const void*, char* buffer, std::size_t size) noexcept {
  constexpr const char* kText = "no event of this provider carries an error";
  if (buffer == nullptr || size == 0) return kText;
  std::snprintf(buffer, size, "%s", kText);
  return buffer;
}

constinit fi_ops eq_fid_ops = fid_ops({.close = close_object<Eq>, .control = control_wait<Eq>});

constinit fi_ops_eq eq_ops = {
    .size = sizeof(fi_ops_eq),
    .read = Method<&Eq::read>::entry,
    .readerr = eq_read_error,
    .write = Method<&Eq::write>::entry,
    .sread = Method<&Eq::wait>::entry,
    .strerror = eq_error_text,
};

}  // namespace

Eq::Eq(Fabric& fabric, std::size_t events_max, fi_wait_obj wait_object, void* context)
    : fid_eq{{FI_CLASS_EQ, context, &eq_fid_ops}, &eq_ops},
      fabric_(fabric),
      events_max_(events_max),
      wait_object_(wait_object) {}

int Eq::open(Fabric& fabric, const fi_eq_attr* attributes, fid_eq** handle, void* context) {
  const fi_eq_attr& wanted = attributes_at(attributes);
  if (wanted.flags & ~(FI_WRITE | FI_AFFINITY)) return -FI_ENOSYS;
  if (const int error = check_wait_object(wanted.wait_obj)) return error;
  *handle = new Eq(fabric, std::max(wanted.size, kEventsMin), wanted.wait_obj, context);
  return 0;
}

ssize_t Eq::read(std::uint32_t* event, void* buffer, std::size_t size, std::uint64_t flags) {
  const std::lock_guard guard(lock_);
  if (events_.empty()) return -FI_EAGAIN;
  const Event& head = events_.front();
  const std::size_t part = buffer != nullptr ? std::min(size, head.bytes.size()) : 0;
  if (part > 0) std::memcpy(buffer, head.bytes.data(), part);
  if (event != nullptr) *event = head.kind;
  if (!(flags & FI_PEEK)) events_.pop_front();
  if (events_.empty() && sleeper_ != nullptr) sleeper_->clear();
  return static_cast<ssize_t>(part);
}

ssize_t Eq::write(std::uint32_t event, const void* buffer, std::size_t size, std::uint64_t) {
  if (size > kEventBytesMax || (buffer == nullptr && size > 0)) return -FI_EINVAL;
  const auto* bytes = static_cast<const std::byte*>(buffer);
  Event entry{event, {bytes, bytes + size}};
  const std::lock_guard guard(lock_);
  if (events_.size() >= events_max_) return -FI_EAGAIN;
  events_.push_back(std::move(entry));
  if (sleeper_ != nullptr) sleeper_->wake();
  return static_cast<ssize_t>(size);
}

ssize_t Eq::wait(std::uint32_t* event, void* buffer, std::size_t size, int timeout, std::uint64_t flags) {
  if (wait_object_ == FI_WAIT_NONE) return -FI_EINVAL;
  return wait_until(
      fabric_->platform(), timeout, [&] { return read(event, buffer, size, flags); },
      [&] { return sleeper(); }, [](engine::Sleeper&) { return kForever; });
}

engine::Sleeper* Eq::sleeper() {
  if (wait_object_ == FI_WAIT_YIELD) return nullptr;
  const std::lock_guard guard(lock_);
  if (sleeper_ == nullptr) {
    sleeper_ = fabric_->platform().open_sleeper();
    if (sleeper_ != nullptr && !events_.empty()) sleeper_->wake();
  }
  return sleeper_.get();
}

int Eq::arm() {
  if (wait_object_ == FI_WAIT_NONE) return -FI_EINVAL;
  if (sleeper() == nullptr) return -FI_EAGAIN;
  const std::lock_guard guard(lock_);
  return events_.empty() ? 0 : -FI_EAGAIN;
}

}  // namespace cluster::api
