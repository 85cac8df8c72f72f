#include "api/cq.h"

#include <algorithm>

#include "api/wait.h"

namespace cluster::api {
namespace {

template <typename Entry>
ssize_t read(fid_cq* cq, void* buffer, std::size_t count) noexcept {
  return guarded([&] { return static_cast<Cq&>(*cq).read<Entry>(buffer, count, nullptr); });
}

template <typename Entry>
ssize_t read_from(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* sources) noexcept {
  return guarded([&] { return static_cast<Cq&>(*cq).read<Entry>(buffer, count, sources); });
}

template <typename Entry>
ssize_t wait(fid_cq* cq, void* buffer, std::size_t count, const void* condition, int timeout) noexcept {
  Cq& object = static_cast<Cq&>(*cq);
  return guarded(
      [&] { return object.wait<Entry>(buffer, count, nullptr, object.threshold(condition), timeout); });
}

template <typename Entry>
ssize_t wait_from(fid_cq* cq, void* buffer, std::size_t count, fi_addr_t* sources, const void* condition,
                  int timeout) noexcept {
  Cq& object = static_cast<Cq&>(*cq);
  return guarded(
      [&] { return object.wait<Entry>(buffer, count, sources, object.threshold(condition), timeout); });
}

ssize_t read_error(fid_cq* cq, fi_cq_err_entry* entry, std::uint64_t) noexcept {
  if (entry == nullptr) return -FI_EINVAL;
  return guarded([&] { return static_cast<Cq&>(*cq).read_error(entry); });
}

int signal(fid_cq* cq) noexcept { return static_cast<Cq&>(*cq).signal(); }

const char* error_text(fid_cq* cq, int provider_error, const void*, char* buffer, std::size_t size) noexcept {
  return static_cast<Cq&>(*cq).error_text(provider_error, buffer, size);
}

int control(fid* cq, int command, void* argument) noexcept {
  Cq& object = object_of<Cq>(cq);
  return guarded([&] {
    return control_wait(command, argument, object.wait_object(), [&] { return object.progress().sleeper(); });
  });
}

constinit fi_ops cq_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_object<Cq>,
    .bind = kEnosys,
    .control = control,
    .ops_open = kEnosys,
    .tostr = kEnosys,
    .ops_set = kEnosys,
};

template <typename Entry>
constinit fi_ops_cq cq_ops = {
    .size = sizeof(fi_ops_cq),
    .read = read<Entry>,
    .readfrom = read_from<Entry>,
    .readerr = read_error,
    .sread = wait<Entry>,
    .sreadfrom = wait_from<Entry>,
    .signal = signal,
    .strerror = error_text,
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
      progress_(domain.platform()),
      backoff_(domain.platform()),
      wait_object_(attributes.wait_obj),
      threshold_wanted_(attributes.wait_cond == FI_CQ_COND_THRESHOLD),
      domain_(domain) {}

/// The size asked for is not looked at: the queue grows, and so never overruns.
int Cq::open(Domain& domain, const fi_cq_attr* attributes, fid_cq** handle, void* context) {
  if (handle == nullptr) return -FI_EINVAL;
  const fi_cq_attr defaults{};
  const fi_cq_attr& wanted = attributes != nullptr ? *attributes : defaults;
  if (wanted.flags & ~FI_AFFINITY) return -FI_ENOSYS;
  if (const int error = check_wait_object(wanted.wait_obj)) return error;
  fi_ops_cq* ops = ops_for(wanted.format);
  if (ops == nullptr) return -FI_ENOSYS;
  *handle = new Cq(domain, *ops, wanted, context);
  return 0;
}

/// What does not fit into the caller's array need not be there. Once there is nothing to wait for any
/// more (time is up, somebody signals, the thread gets a signal), fewer entries are taken as they are.
template <typename Entry>
ssize_t Cq::wait(void* buffer, std::size_t count, fi_addr_t* sources, std::size_t threshold, int timeout) {
  if (wait_object_ == FI_WAIT_NONE) return -FI_EINVAL;
  const std::size_t enough = std::clamp<std::size_t>(threshold, 1, std::max<std::size_t>(count, 1));
  bool signaled = false;
  const ssize_t result = wait_until(
      domain_->platform(), timeout,
      [&]() -> ssize_t {
        if (enough > 1 && queue_.lacks(enough)) progress_.poll();
        if (enough == 1 || !queue_.lacks(enough)) {
          const ssize_t taken = read<Entry>(buffer, count, sources);
          if (taken != -FI_EAGAIN) return taken;
        }
        signaled = signaled_.exchange(false);
        return signaled ? 0 : -FI_EAGAIN;
      },
      [&] { return wait_object_ == FI_WAIT_YIELD ? nullptr : progress_.sleeper(); },
      [&](engine::Sleeper& sleeper) { return prepare_sleep(sleeper, enough) ? kForever : 0ms; });
  if (result != -FI_EAGAIN && result != -FI_EINTR && !signaled) return result;
  return enough > 1 ? read<Entry>(buffer, count, sources) : -FI_EAGAIN;
}

/// The queue first: what the engines' turn brings must find the sleeper listed.
bool Cq::prepare_sleep(engine::Sleeper& sleeper, std::size_t threshold) {
  return queue_.wake_at_next(sleeper, threshold) && !signaled_.load() && progress_.arm() &&
         queue_.lacks(threshold);
}

int Cq::arm() {
  if (wait_object_ == FI_WAIT_NONE) return -FI_EINVAL;
  if (signaled_.exchange(false)) return -FI_EAGAIN;  // told by this; nobody else would take it away
  engine::Sleeper* const sleeper = wait_object_ == FI_WAIT_YIELD ? nullptr : progress_.sleeper();
  return sleeper != nullptr && prepare_sleep(*sleeper, 1) ? 0 : -FI_EAGAIN;
}

int Cq::signal() {
  if (wait_object_ == FI_WAIT_NONE) return -FI_EINVAL;
  signaled_.store(true);
  progress_.wake();
  return 0;
}

}  // namespace cluster::api
