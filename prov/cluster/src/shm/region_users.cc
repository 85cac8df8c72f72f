#include "shm/region_users.h"

#include <algorithm>
#include <utility>

#include "os/wait_set.h"

namespace cluster::shm {
namespace {

/// A small copy takes a microsecond or two: it is waited for without sleep.
constexpr int kYields = 64;

}  // namespace

bool RegionUsers::User::gone() const {
  if (std::atomic_ref(page().ended).load(std::memory_order_acquire) != 0) return true;
  return socket ? socket.hung_up() || socket.peer_process_ended() : process.ended();
}

std::shared_ptr<RegionUsers::User> RegionUsers::list(os::LocalSocket& socket, os::SharedMemory page,
                                                     const void* via) {
  auto user = std::shared_ptr<User>(
      new User{os::PeerProcess(socket, os::PeerProcess::Watch::number), std::move(page), via, {}});
  if (!user->process.observable()) user->socket = std::move(socket);
  const std::lock_guard guard(mutex_);
  return users_.emplace_back(std::move(user));
}

/// An initiator that comes from now on finds the entry closed.
bool RegionUsers::wait_until_unused(std::uint32_t entry) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // between the entry's state and the words of use
  while (const std::shared_ptr<User> user =
             find([&](const User& each) { return each.used() == entry + 1 && !each.gone(); })) {
    if (!wait_while(*user, [&] { return user->used() == entry + 1; })) return false;
  }
  return true;
}

/// An initiator whose access does not end stays listed: the region that it uses must not be taken for unused.
void RegionUsers::revoke(const void* via) {
  {
    const std::lock_guard guard(mutex_);
    for (const auto& user : users_) {
      if (user->via == via) std::atomic_ref(user->page().revoked).store(1, std::memory_order_relaxed);
    }
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);  // between that and the words of use
  while (const std::shared_ptr<User> user =
             find([&](const User& each) { return each.via == via && !each.kept; })) {
    const bool unused = wait_while(*user, [&] { return user->used() != 0; });
    const std::lock_guard guard(mutex_);
    user->kept = !unused;
    if (unused) std::erase(users_, user);
  }
}

/// It copies no list, since there may be no memory for one when a region or an endpoint is closed.
template <typename Wanted>
std::shared_ptr<RegionUsers::User> RegionUsers::find(Wanted&& wanted) {
  const std::lock_guard guard(mutex_);
  const auto found =
      std::find_if(users_.begin(), users_.end(), [&](const auto& user) { return wanted(*user); });
  return found != users_.end() ? *found : nullptr;
}

void RegionUsers::forget_gone() {
  const std::lock_guard guard(mutex_);
  std::erase_if(users_, [](const auto& user) { return user->gone(); });
}

template <typename Busy>
bool RegionUsers::wait_while(const User& user, Busy&& busy) {
  for (int i = 0; i < kYields; ++i) {
    if (!busy()) return true;
    os::timed_yield();
  }
  const Time deadline = clock_.now() + kUseMax;
  while (busy()) {
    if (user.gone()) return true;
    if (clock_.now() > deadline) {
      log_.warn(
          "process %d does not finish a remote access (is it stopped?): fi_close fails, and the memory stays "
          "registered",
          user.process.number());
      return false;
    }
    os::sleep_shortest();
  }
  return true;
}

}  // namespace cluster::shm
