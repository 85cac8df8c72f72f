#include "api/profile.h"

#include <algorithm>
#include <cstring>

#include "api/endpoint.h"

namespace cluster::api::profile {
namespace {

/// What an endpoint has counted, variable by variable; between start_reads and end_reads all of the
/// moment when the former was called. Used by one thread at a time, as libfabric's objects that are
/// not an endpoint's own.
class Profile : public Handle {
 public:
  Profile(Endpoint& endpoint, void* context);

  void take_snapshot() {
    frozen_ = true;
    look();
  }
  void drop_snapshot() { frozen_ = false; }
  bool read(std::uint32_t id, std::uint64_t& value);
  static std::size_t describe(Description* list, std::size_t room);

 private:
  void look() {
    unexpected_ = endpoint_->unexpected_messages();
    endpoint_->read_counters(counters_);
  }

  Ref<Endpoint> endpoint_;
  Counters counters_;
  std::uint64_t unexpected_ = 0;
  bool frozen_ = false;
};

Profile& object(Handle* handle) { return *static_cast<Profile*>(handle); }

bool Profile::read(std::uint32_t id, std::uint64_t& value) {
  if (!frozen_) look();
  if (id == kUnexpectedMessageCount) {
    value = unexpected_;
    return true;
  }
  bool found = false;
  std::uint32_t own = kOwnVariable;
  counters_.each([&](const char*, std::uint64_t counted, const char*) {
    if (own++ != id) return;
    value = counted;
    found = true;
  });
  return found;
}

/// Writes what there is room for and returns how many there are.
std::size_t Profile::describe(Description* list, std::size_t room) {
  std::size_t count = 0;
  const auto add = [&](std::uint32_t id, const char* name, const char* text) {
    if (count < room) list[count] = {id, 0, {FI_UINT64}, 0, sizeof(std::uint64_t), name, text};
    ++count;
  };
  add(kUnexpectedMessageCount, "FI_VAR_UNEXP_MSG_CNT", "messages that wait for their receive");
  std::uint32_t own = kOwnVariable;
  Counters().each([&](const char* name, std::uint64_t, const char* help) { add(own++, name, help); });
  return count;
}

/// Counters are the endpoint's; somebody else may be looking at them too.
void reset(Handle*, std::uint64_t) noexcept {}

ssize_t query_variables(Handle*, Description* list, std::size_t* count) noexcept {
  if (count == nullptr) return -FI_EINVAL;
  const std::size_t room = list == nullptr ? 0 : *count;
  *count = Profile::describe(list, room);
  return static_cast<ssize_t>(list == nullptr ? 0 : std::min(room, *count));
}

ssize_t query_events(Handle*, Description*, std::size_t* count) noexcept {
  if (count == nullptr) return -FI_EINVAL;
  *count = 0;
  return 0;
}

ssize_t read(Handle* handle, std::uint32_t id, void* data, std::size_t* size) noexcept {
  if (data == nullptr || size == nullptr) return -FI_EINVAL;
  std::uint64_t value = 0;
  if (!object(handle).read(id, value)) return -FI_EINVAL;
  const bool fits = *size >= sizeof value;
  *size = sizeof value;
  if (!fits) return -FI_ETOOSMALL;
  std::memcpy(data, &value, sizeof value);
  return sizeof value;
}

/// There are no events to hear of: they would have to be told from inside the engine's door.
int register_callback(Handle*, std::uint32_t, Callback, void*) noexcept { return -FI_EINVAL; }

void start_reads(Handle* handle, std::uint64_t) noexcept { object(handle).take_snapshot(); }
void end_reads(Handle* handle, std::uint64_t) noexcept { object(handle).drop_snapshot(); }

int close(fid* plain) noexcept {
  delete &object(reinterpret_cast<Handle*>(plain));
  return 0;
}

constinit fi_ops fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = kEnosys,
    .control = kEnosys,
    .ops_open = kEnosys,
    .tostr = kEnosys,
    .ops_set = kEnosys,
};

constinit Ops ops = {
    .size = sizeof(Ops),
    .reset = reset,
    .query_variables = query_variables,
    .query_events = query_events,
    .read = read,
    .register_callback = register_callback,
    .start_reads = start_reads,
    .end_reads = end_reads,
};

Profile::Profile(Endpoint& endpoint, void* context)
    : Handle{{kClass, context, &fid_ops}, &profile::ops}, endpoint_(endpoint) {}

}  // namespace

int open(fid* plain, Ops*** out, void* context) noexcept {
  Endpoint& endpoint = object_of<Endpoint>(plain).original();
  if (!endpoint.enabled()) return -FI_EOPBADSTATE;
  return guarded([&] {
    *out = &(new Profile(endpoint, context))->ops;
    return 0;
  });
}

}  // namespace cluster::api::profile
