#include "shm/region_directory.h"

#include <algorithm>
#include <utility>

#include "base/end_of_memory.h"
#include "os/descriptor.h"
#include "os/wait_set.h"

namespace cluster::shm {
namespace {

/// How many times the close of a region yields the processor before it sleeps. The close usually waits for a
/// small copy, which takes only one or two microseconds.
constexpr int kYields = 64;

constexpr Duration kHelloWait = 5ms;
constexpr Duration kSignedHelloWait = 50ms;  ///< longer, because the initiator has to wake up to send it

std::uint32_t live_state(const carrier::OfferedRegion& region) {
  return RegionEntry::kLive | (region.readable ? RegionEntry::kReadable : 0) |
         (region.writable ? RegionEntry::kWritable : 0) |
         (region.reads_served ? RegionEntry::kReadsServed : 0) |
         (region.writes_served ? RegionEntry::kWritesServed : 0);
}

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

/// An initiator that is added during the wait finds the entry closed, so this function need not wait for it.
bool RegionUsers::wait_until_unused(std::uint32_t entry) {
  // The entry's state is written before the use pages are read.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (const std::shared_ptr<User> user =
             find([&](const User& each) { return each.used() == entry + 1 && !each.gone(); })) {
    if (!wait_while(*user, [&] { return user->used() == entry + 1; })) return false;
  }
  return true;
}

/// If the access of an initiator does not end, the initiator stays in the list. Otherwise the region in use
/// would count as unused.
void RegionUsers::revoke(const void* via) {
  {
    const std::lock_guard guard(mutex_);
    for (const auto& user : users_) {
      if (user->via == via) std::atomic_ref(user->page().revoked).store(1, std::memory_order_relaxed);
    }
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);  // `revoked` is written before the use pages are read
  while (const std::shared_ptr<User> user =
             find([&](const User& each) { return each.via == via && !each.kept; })) {
    const bool unused = wait_while(*user, [&] { return user->used() != 0; });
    const std::lock_guard guard(mutex_);
    user->kept = !unused;
    if (unused) std::erase(users_, user);
  }
}

/// Returns a user for which `wanted` returns true, or null. Callers search again after each user instead of
/// copying the list, because a close may have no memory for a copy.
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
          "process %d does not finish a remote access (is it stopped?): fi_close of the region fails, and "
          "the memory stays registered",
          user.process.number());
      return false;
    }
    os::sleep_shortest();
  }
  return true;
}

std::string region_socket_name(const SocketAddress& endpoint) {
  return plain_name("cluster-regions-", kRegionVersion, endpoint);
}

/// Creates the table when the first region is offered. Returns false if there is no table. Without a table,
/// this side's library executes all accesses.
bool RegionDirectory::open() {
  if (opened_) return static_cast<bool>(memory_);
  opened_ = true;
  std::string reason = "a guard page cannot be mapped";
  const bool tried = enough_memory_for([&] {
    guard_ = os::GuardPage::open(random_);
    if (guard_) memory_ = os::SharedMemory::create_unwritable(RegionEntries::kBytes, file_, reason);
  });
  if (!memory_) {
    log_.info(
        "peers on this node cannot access registered memory of this process directly (%s); this process's "
        "library serves their remote accesses",
        tried ? reason.c_str() : "there is no memory");
    return false;
  }
  entries_ = RegionEntries(memory_.bytes());
  for (Endpoint& endpoint : endpoints_) start(endpoint);
  return true;
}

void RegionDirectory::start(Endpoint& endpoint) {
  const RegionWelcome welcome{
      .guard = guard_.mark(), .reads_served = endpoint.reads_served, .writes_served = endpoint.writes_served};
  const bool started = enough_memory_for([&] {
    endpoint.server = std::make_unique<RegionServer>(endpoint.name, welcome, file_, users_, random_, log_);
    endpoint.server->start(keys_of_(endpoint.name));
  });
  if (!started) endpoint.server.reset();  // without a server, this side's library executes accesses
}

void RegionDirectory::offer(std::uint64_t key, const carrier::OfferedRegion& region) {
  const std::lock_guard guard(mutex_);
  if (!open()) return;
  const std::uint32_t number = entries_.find_vacant(key);
  if (number == RegionEntries::kEntries) {
    entries_.unlisted().fetch_add(1, std::memory_order_relaxed);
    return;
  }
  RegionEntry& entry = entries_.at(number);
  std::atomic_ref(entry.key).store(key, std::memory_order_relaxed);
  entry.base = region.base;
  entry.start = region.start;
  entry.length = region.length;
  std::atomic_ref(entry.generation).store(++generation_, std::memory_order_relaxed);
  entries_.state(number).store(live_state(region), std::memory_order_release);
}

void RegionDirectory::change(std::uint64_t key, const carrier::OfferedRegion& region) {
  const std::lock_guard guard(mutex_);
  if (!memory_) return;
  const std::uint32_t number = entries_.find(key, RegionEntry::kLive);
  if (number != RegionEntries::kEntries)
    entries_.state(number).store(live_state(region), std::memory_order_release);
}

/// While this function waits for uses to end, the entry is neither live nor vacant, so no other region can
/// get it.
bool RegionDirectory::withdraw(std::uint64_t key) {
  std::uint32_t number;
  {
    const std::lock_guard guard(mutex_);
    if (!memory_) return true;
    number = entries_.find(key, RegionEntry::kLive | RegionEntry::kClosing);
    if (number == RegionEntries::kEntries) {
      entries_.unlisted().fetch_sub(1, std::memory_order_relaxed);
      return true;
    }
    entries_.state(number).store(RegionEntry::kClosing, std::memory_order_seq_cst);
  }
  if (!users_.wait_until_unused(number)) return false;
  entries_.state(number).store(RegionEntry::kVacant, std::memory_order_release);
  return true;
}

std::shared_ptr<void> RegionDirectory::serve(const SocketAddress& endpoint, bool reads_served,
                                             bool writes_served) {
  std::list<Endpoint>::iterator added;
  {
    const std::lock_guard guard(mutex_);
    added = endpoints_.insert(endpoints_.end(), {endpoint, reads_served, writes_served});
    if (memory_) start(*added);
  }
  // The lock is released here. If there is no memory for the handle, its deleter calls end(), which takes the
  // lock.
  return std::shared_ptr<Endpoint>(&*added, [this, added](Endpoint*) { end(added); });
}

/// Destroys the server outside the lock, because its destructor waits for current accesses.
void RegionDirectory::end(std::list<Endpoint>::iterator endpoint) {
  std::unique_ptr<RegionServer> server;
  {
    const std::lock_guard guard(mutex_);
    server = std::move(endpoint->server);
    endpoints_.erase(endpoint);
  }
}

RegionServer::~RegionServer() {
  progress_client_.reset();
  users_.revoke(this);
}

void RegionServer::start(const seal::JobKeys& keys) {
  if (progress_client_ != nullptr) return;
  std::string reason;
  listener_ = KeyedListener::listen(keyed_names(region_socket_name(endpoint_), keys), reason);
  if (listener_) {
    int error = 0;
    progress_client_ = os::start_progress_client([this] { return serve(); }, error);
    if (progress_client_ != nullptr) return;
    reason = os::error_text(error);
    listener_ = {};
  }
  log_.info(
      "peers on this node cannot access the memory of endpoint %s directly (%s); this process's library "
      "serves their remote accesses",
      endpoint_.text().c_str(), reason.c_str());
}

/// Called by the progress thread. The result says when the thread must call again.
os::NextWake RegionServer::serve() {
  dismissed_ = {};
  if (!initiator_ && !accept()) return {os::NextWake::kUntilReadable, listener_.descriptor()};
  if (initiator_ && !answer()) {
    const Duration most = initiator_->answered() ? kSignedHelloWait : kHelloWait;
    if (!std::exchange(waited_, true)) return {most, initiator_->socket().descriptor()};
    dismiss();
  }
  waited_ = false;
  return {Duration::zero()};
}

void RegionServer::dismiss() {
  dismissed_ = initiator_->take_socket();
  initiator_.reset();
}

/// Accepts one connection. Returns true if a connection was waiting, even if this side refuses it.
bool RegionServer::accept() {
  std::string reason;
  KeyedSocket connection = listener_.accept(reason);
  if (!connection.socket) return false;
  if (connection.socket.same_user()) initiator_.emplace(std::move(connection), random_);
  return true;
}

/// Receives the initiator's hello and answers it. Returns false if the hello has not arrived.
bool RegionServer::answer() {
  RegionHello hello;
  os::Descriptor page;
  const bool answered = initiator_->answered();
  const HelloReceiver::Receipt receipt = initiator_->receive(as_bytes(&hello, sizeof hello), page);
  if (receipt == HelloReceiver::Receipt::nothing) {
    if (initiator_->answered() != answered) waited_ = false;
    return false;
  }
  dismiss();
  if (receipt != HelloReceiver::Receipt::message || hello.magic != RegionHello::kMagic) return true;
  std::string reason;
  os::SharedMemory memory = os::SharedMemory::map(page, sizeof(UsePage), reason);
  if (!memory) return true;
  users_.forget_gone();
  // The initiator must be in the list before it can use anything. So the server adds it before it sends the
  // welcome.
  users_.add(dismissed_, std::move(memory), this, [&](const os::LocalSocket& user) {
    user.send(as_bytes(&welcome_, sizeof welcome_), table_, reason);
  });
  return true;
}

}  // namespace cluster::shm
