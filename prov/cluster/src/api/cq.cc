#include "api/cq.h"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "api/fid_object.h"
#include "api/wait.h"
#include "base/end_of_memory.h"

namespace cluster::api {
namespace {

/// The application owns the fi_cq_err_entry. Two versions of libfabric have appended fields to it. So the
/// provider writes only the fields that exist in the fabric's API version. The provider may be compiled with
/// headers in which src_addr is not declared, so src_addr is written by its offset.
constexpr std::uint32_t kSizedDataVersion = FI_VERSION(1, 5);  ///< the first version with err_data_size
/// The first version with src_addr, which is the last field.
constexpr std::uint32_t kSourceVersion = FI_VERSION(1, 20);

constexpr std::size_t kSourceOffset = 80;

static_assert(offsetof(fi_cq_err_entry, err_data_size) == 72);
static_assert(sizeof(fi_cq_err_entry) == kSourceOffset ||
              sizeof(fi_cq_err_entry) == kSourceOffset + sizeof(fi_addr_t));

template <typename Entry>
[[gnu::flatten]] ssize_t cq_read(fid_cq* cq, void* buffer, std::size_t count) noexcept {
  return guarded([&] { return object_of<Cq>(cq).read<Entry>(buffer, count, nullptr); });
}

template <typename Entry>
ssize_t cq_wait(fid_cq* cq, void* buffer, std::size_t count, const void* condition, int timeout) {
  return Method<&Cq::wait<Entry>>::sleeping_entry(cq, buffer, count, nullptr, condition, timeout);
}

const char* cq_error_text(fid_cq* cq, int provider_error, const void*, char* buffer,
                          std::size_t size) noexcept {
  return object_of<Cq>(cq).error_text(provider_error, buffer, size);
}

constinit fi_ops cq_fid_ops = fid_ops({.close = close_object<Cq>, .control = control_wait<Cq>});

template <typename Entry>
constinit fi_ops_cq cq_ops = {
    .size = sizeof(fi_ops_cq),
    .read = cq_read<Entry>,
    .readfrom = Method<&Cq::read<Entry>>::entry,
    .readerr = Method<&Cq::read_error>::entry,
    .sread = cq_wait<Entry>,
    .sreadfrom = Method<&Cq::wait<Entry>>::sleeping_entry,
    .signal = Method<&Cq::signal>::entry,
    .strerror = cq_error_text,
};

fi_ops_cq* ops_for(const fi_cq_format& format) {
  switch (number_of(format)) {
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_CONTEXT: return &cq_ops<fi_cq_entry>;
    case FI_CQ_FORMAT_MSG: return &cq_ops<fi_cq_msg_entry>;
    case FI_CQ_FORMAT_DATA: return &cq_ops<fi_cq_data_entry>;
    case FI_CQ_FORMAT_TAGGED: return &cq_ops<fi_cq_tagged_entry>;
  }
  return nullptr;
}

}  // namespace

Cq::Cq(Domain& domain, fi_ops_cq& table, const fi_cq_attr& attributes, void* context)
    : fid_cq{{FI_CLASS_CQ, context, &cq_fid_ops}, &table},
      queue_(domain.platform().fence()),
      progress_(domain.platform(), attributes.wait_obj),
      backoff_(domain.platform()),
      domain_(domain) {}

/// Ignores the size in the attributes, because the queue grows as needed. The queue overruns only if memory
/// runs out.
int Cq::open(Domain& domain, const fi_cq_attr* attributes, fid_cq** handle, void* context) {
  const fi_cq_attr& wanted = attributes_at(attributes);
  if (wanted.flags & ~FI_AFFINITY) return -FI_ENOSYS;
  if (const int error = check_wait_object(wanted.wait_obj, wanted.wait_set)) return error;
  fi_ops_cq* ops = ops_for(wanted.format);
  if (ops == nullptr) return -FI_ENOSYS;
  std::unique_ptr<Cq> cq(new Cq(domain, *ops, wanted, context));
  if (const int error = cq->membership_.join(cq->fid, cq->progress_, wanted.wait_set)) return error;
  *handle = cq.release();
  return 0;
}

/// A call of fi_cq_signal ends the wait. The provider ignores the condition (FI_CQ_COND_THRESHOLD), which is
/// only a hint.
template <typename Entry>
ssize_t Cq::wait(void* buffer, std::size_t count, fi_addr_t* sources, const void*, int timeout) {
  if (progress_.wait_object() == FI_WAIT_NONE) return -FI_EINVAL;
  bool signaled = false;
  const ssize_t result = wait_until(
      progress_, timeout,
      [&]() -> ssize_t {
        const ssize_t taken = read<Entry>(buffer, count, sources);
        if (taken != -FI_EAGAIN) return taken;
        signaled = signaled_.exchange(false);
        return signaled ? 0 : -FI_EAGAIN;
      },
      [&](engine::Sleeper& sleeper) { return prepare_sleep(sleeper) ? kForever : 0ms; });
  return signaled ? -FI_EAGAIN : result;
}

/// Arms the queue first and then the engines. Arming the engines runs one turn of each, and a completion in
/// such a turn must already wake the sleeper.
bool Cq::prepare_sleep(engine::Sleeper& sleeper) {
  return queue_.wake_at_next(sleeper) && !signaled_.load() && progress_.arm() && queue_.empty();
}

int Cq::arm() {
  if (progress_.wait_object() == FI_WAIT_NONE) return -FI_EINVAL;
  if (signaled_.exchange(false)) return -FI_EAGAIN;  // this call consumes the signal
  engine::Sleeper* const sleep_on = progress_.sleeper();
  return sleep_on != nullptr && prepare_sleep(*sleep_on) ? 0 : -FI_EAGAIN;
}

bool Cq::has_events() {
  progress_.poll();
  return !queue_.empty();
}

int Cq::signal() {
  if (progress_.wait_object() == FI_WAIT_NONE) return -FI_EINVAL;
  signaled_.store(true);
  progress_.wake();
  return 0;
}

ssize_t Cq::read_error(fi_cq_err_entry* entry, std::uint64_t) {
  if (entry == nullptr) return -FI_EINVAL;
  if (queue_.empty() || count_read()) progress_.poll();
  protocol::Completion failed;
  const std::size_t taken = queue_.drain(
      1, [](const protocol::Completion& completion) { return completion.status != Status::ok; },
      [&](const protocol::Completion& completion) { failed = completion; });
  if (taken == 0) return -FI_EAGAIN;

  const std::uint32_t version = domain_->fabric().api_version;
  write_entry(*entry, failed);
  entry->olen = failed.lost;
  entry->err = fi_errno_of(failed.status);
  entry->prov_errno = static_cast<int>(failed.status);
  const std::lock_guard guard(error_lock_);
  error_ = failed.status;
  error_peer_ = failed.peer;
  fill_error_data(failed.peer, *entry, version >= kSizedDataVersion);
  if (version >= kSourceVersion) {
    std::memcpy(reinterpret_cast<std::byte*>(entry) + kSourceOffset, &failed.source, sizeof failed.source);
  }
  return 1;
}

/// Reports the peer's socket address as err_data. If the application has passed a buffer, copies the address
/// into the buffer, or nothing if the address does not fit. Without a buffer, err_data points to error_data_.
/// `sized`: true if the entry has the field err_data_size.
void Cq::fill_error_data(const SocketAddress& peer, fi_cq_err_entry& entry, bool sized) {
  const std::size_t size = peer.to(error_data_);
  if (sized && entry.err_data_size > 0) {
    const bool fits = entry.err_data != nullptr && size <= entry.err_data_size;
    if (fits && size > 0) std::memcpy(entry.err_data, &error_data_, size);
    entry.err_data_size = fits ? size : 0;
    return;
  }
  entry.err_data = size > 0 ? &error_data_ : nullptr;
  if (sized) entry.err_data_size = size;
}

/// Implements fi_cq_strerror. The call does not pass the size of err_data, so the peer's name is taken from
/// the error that was read last. If that error had another status, the text contains no name.
const char* Cq::error_text(int provider_error, char* buffer, std::size_t size) {
  const std::lock_guard guard(error_lock_);
  const auto status = static_cast<Status>(provider_error);
  std::string peer;
  enough_memory_for([&] {
    if (status == error_ && !error_peer_.empty()) peer = ": " + error_peer_.text();
  });
  const bool own_buffer = buffer == nullptr || size == 0;
  char* text = own_buffer ? error_text_ : buffer;
  std::snprintf(text, own_buffer ? sizeof error_text_ : size, "%s%s", describe(status), peer.c_str());
  return text;
}

}  // namespace cluster::api
