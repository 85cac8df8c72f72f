#include "api/connection_requests.h"

#include <algorithm>
#include <utility>

#include "api/fid_object.h"
#include "api/passive_endpoint.h"
#include "base/end_of_memory.h"

namespace cluster::api {
namespace {

/// ConnectionRequests owns the handle, so an application cannot close it.
constinit fi_ops request_ops = fid_ops({.close = [](fid*) { return -FI_ENOSYS; }});

}  // namespace

fid_t ConnectionRequests::add(const connection::ConnectRequest& request, PassiveEndpoint* owner,
                              std::size_t most) {
  auto entry = std::make_unique<Entry>();
  entry->handle = {FI_CLASS_CONNREQ, nullptr, &request_ops};
  entry->request = request;
  entry->owner = owner;
  const std::lock_guard guard(mutex_);
  const auto count =
      std::ranges::count_if(waiting_, [&](const auto& each) { return each.second->owner == owner; });
  if (static_cast<std::size_t>(count) >= most) return nullptr;
  fid_t const handle = &entry->handle;
  waiting_.emplace(handle, std::move(entry));
  return handle;
}

std::optional<connection::ConnectRequest> ConnectionRequests::find(fid_t handle) {
  const std::lock_guard guard(mutex_);
  const auto found = waiting_.find(handle);
  if (found == waiting_.end() || found->second->owner == nullptr) return std::nullopt;
  return found->second->request;
}

/// If there is no memory to tell the asker, the asker keeps watching the passive endpoint. Then the asker's
/// attempt fails if the passive endpoint closes before the accept.
bool ConnectionRequests::hand_over(fid_t handle, const connection::ConnectRequest& request,
                                   const SocketAddress& taker) {
  const std::lock_guard passive_guard(passive_mutex_);
  PassiveEndpoint* owner = nullptr;
  {
    const std::lock_guard guard(mutex_);
    const auto found = waiting_.find(handle);
    if (found == waiting_.end() || found->second->request != request) return false;
    Entry& entry = *found->second;
    const auto is_owner = [&](const auto& each) { return each.second == entry.owner; };
    if (std::ranges::none_of(passive_, is_owner)) return false;  // taken, or its passive endpoint is closing
    owner = std::exchange(entry.owner, nullptr);
  }
  enough_memory_for([&] { owner->hand_over(request, taker); });
  return true;
}

std::optional<connection::ConnectRequest> ConnectionRequests::take(fid_t handle) {
  const std::lock_guard guard(mutex_);
  const auto node = waiting_.extract(handle);
  if (node.empty()) return std::nullopt;
  return node.mapped()->request;
}

bool ConnectionRequests::take(fid_t handle, const connection::ConnectRequest& request) {
  const std::lock_guard guard(mutex_);
  const auto found = waiting_.find(handle);
  if (found == waiting_.end() || found->second->request != request) return false;
  waiting_.erase(found);
  return true;
}

void ConnectionRequests::enter(struct fid& handle, PassiveEndpoint& endpoint) {
  const std::lock_guard guard(passive_mutex_);
  passive_[&handle] = &endpoint;
}

void ConnectionRequests::leave(struct fid& handle) {
  const std::lock_guard guard(passive_mutex_);
  passive_.erase(&handle);
}

SocketAddress ConnectionRequests::take_name(fid_t handle) {
  const std::lock_guard guard(passive_mutex_);
  const auto found = passive_.find(handle);
  return found == passive_.end() ? SocketAddress{} : found->second->give_up_name();
}

std::vector<connection::ConnectRequest> ConnectionRequests::take_all(PassiveEndpoint* owner) {
  std::vector<connection::ConnectRequest> all;
  const std::lock_guard guard(mutex_);
  std::erase_if(waiting_, [&](const auto& each) {
    if (each.second->owner != owner) return false;
    all.push_back(each.second->request);
    return true;
  });
  return all;
}

}  // namespace cluster::api
