#include "api/eq.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "api/wait.h"
#include "base/end_of_memory.h"

namespace cluster::api {
namespace {

constexpr std::size_t kEventsMin = 1024;  ///< the smallest capacity of a queue, in events
constexpr std::size_t kEventBytesMax = 4096;

const char* eq_error_text(fid_eq*, int provider_error, const void*, char* buffer, std::size_t size) noexcept {
  const char* const kText = describe(static_cast<Status>(provider_error));
  if (buffer == nullptr || size == 0) return kText;
  std::snprintf(buffer, size, "%s", kText);
  return buffer;
}

constinit fi_ops eq_fid_ops = fid_ops({.close = close_object<Eq>, .control = control_wait<Eq>});

constinit fi_ops_eq eq_ops = {
    .size = sizeof(fi_ops_eq),
    .read = Method<&Eq::read>::entry,
    .readerr = Method<&Eq::read_error>::entry,
    .write = Method<&Eq::write>::entry,
    .sread = Method<&Eq::wait>::sleeping_entry,
    .strerror = eq_error_text,
};

}  // namespace

Eq::Eq(Fabric& fabric, std::size_t events_max, fi_wait_obj wait_object, void* context)
    : fid_eq{{FI_CLASS_EQ, context, &eq_fid_ops}, &eq_ops},
      fabric_(fabric),
      events_max_(events_max),
      progress_(fabric.platform(), wait_object) {}

Eq::~Eq() {
  for (const Event& event : events_) free(event);
}

void Eq::free(const Event& event) const {
  if (event.info != nullptr) fabric_->platform().free_info(event.info);
}

int Eq::open(Fabric& fabric, const fi_eq_attr* attributes, fid_eq** handle, void* context) {
  const fi_eq_attr& wanted = attributes_at(attributes);
  if (wanted.flags & ~(FI_WRITE | FI_AFFINITY)) return -FI_ENOSYS;
  if (const int error = check_wait_object(wanted.wait_obj, wanted.wait_set)) return error;
  std::unique_ptr<Eq> eq(new Eq(fabric, std::max(wanted.size, kEventsMin), wanted.wait_obj, context));
  if (const int error = eq->membership_.join(eq->fid, eq->progress_, wanted.wait_set)) return error;
  *handle = eq.release();
  return 0;
}

ssize_t Eq::read(std::uint32_t* event, void* buffer, std::size_t size, std::uint64_t flags) {
  if (!occupied()) progress_.poll();
  const std::lock_guard guard(lock_);
  if (events_.empty()) {
    if (!overrun_) return -FI_EAGAIN;
    if (!(flags & FI_PEEK)) {
      overrun_ = false;
      clear_if_empty();
    }
    return -FI_EOVERRUN;
  }
  const Event& head = events_.front();
  if (head.error) return -FI_EAVAIL;
  const std::size_t part = buffer != nullptr ? std::min(size, head.bytes.size()) : 0;
  if (part > 0) std::memcpy(buffer, head.bytes.data(), part);
  if (event != nullptr) *event = head.kind;
  if (!(flags & FI_PEEK)) pop();
  return static_cast<ssize_t>(part);
}

void Eq::pop() {
  events_.pop_front();
  clear_if_empty();
}

/// Makes the descriptor unreadable if there is nothing left to read.
void Eq::clear_if_empty() {
  if (!events_.empty() || overrun_) return;
  if (engine::Sleeper* const sleeper = progress_.opened_sleeper()) sleeper->clear();
}

bool Eq::has_events() {
  progress_.poll();
  return occupied();
}

bool Eq::occupied() {
  const std::lock_guard guard(lock_);
  return !events_.empty() || overrun_;
}

void Eq::push(Event&& event) {
  events_.push_back(std::move(event));
  progress_.wake();
}

/// Returns false if the queue is full.
bool Eq::push_within_limit(Event&& event) {
  if (events_.size() >= events_max_) return false;
  push(std::move(event));
  return true;
}

void Eq::report(std::uint32_t event, const struct fid& object, const void* buffer, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(buffer);
  bool added = false;
  const std::lock_guard guard(lock_);
  enough_memory_for([&] {
    added = push_within_limit({.kind = event, .bytes = {bytes, bytes + size}, .object = &object});
  });
  if (!added) note_overrun();
}

void Eq::add(std::uint32_t event, const struct fid& object, std::vector<std::byte> bytes, fi_info* info) {
  const std::lock_guard guard(lock_);
  push({.kind = event, .bytes = std::move(bytes), .object = &object, .info = info});
}

void Eq::forget(const struct fid& object) {
  const std::lock_guard guard(lock_);
  std::erase_if(events_, [&](const Event& event) {
    const bool forgotten = event.object == &object;
    if (forgotten) free(event);
    return forgotten;
  });
  clear_if_empty();
}

void Eq::note_lost_event() {
  const std::lock_guard guard(lock_);
  note_overrun();
}

void Eq::note_overrun() {
  overrun_ = true;
  progress_.wake();
}

/// Adds the event even if the queue is full, because nothing else reports the failure.
void Eq::report_error(struct fid& object, Status cause, ConstBytes data) {
  fi_eq_err_entry entry{};
  entry.fid = &object;
  entry.context = object.context;
  entry.err = fi_errno_of(cause);
  entry.prov_errno = static_cast<int>(cause);
  const auto* bytes = reinterpret_cast<const std::byte*>(&entry);
  const std::lock_guard guard(lock_);
  const auto add_event = [&] {
    push({.bytes = {bytes, bytes + sizeof entry},
          .error = true,
          .object = &object,
          .error_data = {data.begin(), data.end()}});
  };
  if (!enough_memory_for(add_event)) note_overrun();
}

/// If the caller passes no buffer for err_data, err_data gets a pointer that is valid until the next error is
/// read. The same holds if the caller's API version has no err_data_size.
ssize_t Eq::read_error(fi_eq_err_entry* entry, std::uint64_t flags) {
  if (entry == nullptr) return -FI_EINVAL;
  const std::lock_guard guard(lock_);
  if (events_.empty() || !events_.front().error) return -FI_EAGAIN;
  Event& head = events_.front();
  std::memcpy(entry, head.bytes.data(), offsetof(fi_eq_err_entry, err_data));
  const bool sized = FI_VERSION_GE(fabric_->api_version, FI_VERSION(1, 5));
  if (!sized || entry->err_data == nullptr || entry->err_data_size == 0) {
    read_data_ = head.error_data;
    entry->err_data = read_data_.empty() ? nullptr : read_data_.data();
    if (sized) entry->err_data_size = read_data_.size();
  } else {
    entry->err_data_size = std::min(entry->err_data_size, head.error_data.size());
    std::copy_n(head.error_data.begin(), entry->err_data_size, static_cast<std::byte*>(entry->err_data));
  }
  if (!(flags & FI_PEEK)) pop();
  return sizeof *entry;
}

ssize_t Eq::write(std::uint32_t event, const void* buffer, std::size_t size, std::uint64_t) {
  if (size > kEventBytesMax || (buffer == nullptr && size > 0)) return -FI_EINVAL;
  const auto* bytes = static_cast<const std::byte*>(buffer);
  Event entry{.kind = event, .bytes = {bytes, bytes + size}};
  const std::lock_guard guard(lock_);
  return push_within_limit(std::move(entry)) ? static_cast<ssize_t>(size) : -FI_EAGAIN;
}

ssize_t Eq::wait(std::uint32_t* event, void* buffer, std::size_t size, int timeout, std::uint64_t flags) {
  if (progress_.wait_object() == FI_WAIT_NONE) return -FI_EINVAL;
  return wait_until(
      progress_, timeout, [&] { return read(event, buffer, size, flags); },
      [&](engine::Sleeper&) { return prepare_sleep() ? kForever : 0ms; });
}

int Eq::arm() {
  if (progress_.wait_object() == FI_WAIT_NONE) return -FI_EINVAL;
  return progress_.sleeper() != nullptr && prepare_sleep() ? 0 : -FI_EAGAIN;
}

/// Progress::add wakes the sleeper for each new engine. If no event waits, this function clears that wake-up,
/// and then arms the engines.
bool Eq::prepare_sleep() {
  {
    const std::lock_guard guard(lock_);
    clear_if_empty();
  }
  return progress_.arm() && !occupied();
}

}  // namespace cluster::api
