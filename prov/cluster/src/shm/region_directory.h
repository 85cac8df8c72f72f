// Offers the registered memory of one domain to peers on this node. This is the target's side of the protocol
// in shm/region_layout.h.
//
// Before the first region is offered, no memory is shared and no socket is open.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "carrier/region_offers.h"
#include "os/local_socket.h"
#include "os/peer_process.h"
#include "os/process_memory.h"
#include "os/progress_thread.h"
#include "os/shared_memory.h"
#include "shm/greeting.h"
#include "shm/region_layout.h"

namespace cluster::shm {

/// The initiators that have the table of a domain. For each of them, this side can see which region the
/// initiator uses now and whether the initiator is alive. The close of a region checks all of them.
/// shm/region_layout.h explains why that is enough.
///
/// The server closes the connection of an initiator after the welcome, so an initiator costs no descriptor on
/// this side. (User::socket is the exception.) The initiator says in its page when it has ended. A close that
/// waits for an initiator also asks the kernel whether the initiator's process has ended.
class RegionUsers {
 public:
  RegionUsers(Clock& clock, Log& log) : clock_(clock), log_(log) {}

  /// Adds an initiator that has connected to the server `via`, and then calls `welcome(socket)`. Takes the
  /// socket over only if nothing else tells when the initiator's process ends.
  template <typename Welcome>
  void add(os::LocalSocket& socket, os::SharedMemory page, const void* via, Welcome&& welcome) {
    const std::shared_ptr<User> user = list(socket, std::move(page), via);
    welcome(user->socket ? user->socket : socket);
  }
  /// Waits until no initiator uses the entry, which must not be live. Returns false if an initiator still
  /// uses it after kUseMax.
  bool wait_until_unused(std::uint32_t entry);
  /// Forbids further accesses by the initiators that have connected to the server `via`. Then waits until
  /// their current accesses have ended, at most kUseMax for each initiator.
  void revoke(const void* via);
  /// Forgets initiators that are gone.
  void forget_gone();

 private:
  struct User {
    os::PeerProcess process;
    os::SharedMemory memory;
    const void* via;
    os::LocalSocket socket;  ///< set only if nothing else tells when the process ends
    bool kept = false;       ///< true if the initiator was revoked, but its access did not end

    bool gone() const;  ///< makes system calls
    UsePage& page() const { return *reinterpret_cast<UsePage*>(memory.bytes().data()); }
    std::uint32_t used() const { return std::atomic_ref(page().entry).load(std::memory_order_acquire); }
  };
  /// Adds the initiator to the list. Moves the socket into the list if nothing else tells when the process
  /// ends.
  std::shared_ptr<User> list(os::LocalSocket& socket, os::SharedMemory page, const void* via);
  template <typename Wanted>
  std::shared_ptr<User> find(Wanted&& wanted);
  template <typename Busy>
  bool wait_while(const User& user, Busy&& busy);

  Clock& clock_;
  Log& log_;
  std::mutex mutex_;  ///< held only for moments, because the progress thread locks it, too
  std::vector<std::shared_ptr<User>> users_;
};

/// Sends the table of a domain to initiators, for one endpoint. The progress thread runs the server, so the
/// target's application need not call the library. An initiator connects, sends its use page, and gets an
/// answer at once. If an initiator sends nothing, the server drops the initiator after some milliseconds.
/// Meanwhile the next initiator has to wait. If the endpoint has a key, both sides first prove that they have
/// it (shm/greeting.h).
class RegionServer {
 public:
  /// `welcome` is the message that is sent together with the descriptor `table`. `table` and `users` must
  /// outlive the server.
  RegionServer(const SocketAddress& endpoint, const RegionWelcome& welcome, const os::Descriptor& table,
               RegionUsers& users, Random& random, Log& log)
      : endpoint_(endpoint), welcome_(welcome), table_(table), users_(users), random_(random), log_(log) {}
  RegionServer(const RegionServer&) = delete;
  RegionServer& operator=(const RegionServer&) = delete;
  /// Waits until the current accesses of the server's initiators have ended, but at most kUseMax for each.
  ~RegionServer();

  /// Begins to listen; further calls do nothing. On failure the log says why. `keys`: the keys of the
  /// endpoint.
  void start(const seal::JobKeys& keys);

 private:
  os::NextWake serve();
  bool accept();
  bool answer();
  void dismiss();

  const SocketAddress endpoint_;
  const RegionWelcome welcome_;
  const os::Descriptor& table_;
  RegionUsers& users_;
  Random& random_;
  Log& log_;
  KeyedListener listener_;
  std::optional<HelloReceiver> initiator_;  ///< accepted, but its hello has not arrived
  bool waited_ = false;                     ///< true if the server has already waited for initiator_
  /// The socket of the initiator that was answered or refused last. It stays open until the next call of
  /// serve(), because the progress thread may watch it until then. RegionUsers takes over the socket of an
  /// initiator whose process it cannot observe otherwise.
  os::LocalSocket dismissed_;
  std::shared_ptr<void> progress_client_;
};

class RegionDirectory final : public carrier::RegionOffers {
 public:
  /// Returns the keys of the endpoint with this name.
  using KeysOf = std::function<seal::JobKeys(const SocketAddress&)>;
  static seal::JobKeys no_keys(const SocketAddress&) { return {}; }

  /// The clock, the random source and the log must outlive the directory.
  RegionDirectory(Clock& clock, Random& random, Log& log, KeysOf keys_of = no_keys)
      : random_(random), log_(log), keys_of_(std::move(keys_of)), users_(clock, log) {}

  void offer(std::uint64_t key, const carrier::OfferedRegion& region) override;
  void change(std::uint64_t key, const carrier::OfferedRegion& region) override;
  bool withdraw(std::uint64_t key) override;
  std::shared_ptr<void> serve(const SocketAddress& endpoint, bool reads_served, bool writes_served) override;

 private:
  struct Endpoint {
    SocketAddress name;
    bool reads_served = false;
    bool writes_served = false;
    std::unique_ptr<RegionServer> server = nullptr;
  };

  bool open();
  void start(Endpoint& endpoint);
  void end(std::list<Endpoint>::iterator endpoint);

  Random& random_;
  Log& log_;
  KeysOf keys_of_;
  RegionUsers users_;
  std::mutex mutex_;  ///< protects all members below; not held while a function waits for uses to end
  bool opened_ = false;
  os::Descriptor file_;
  os::SharedMemory memory_;  ///< empty if there is no table
  os::GuardPage guard_;
  RegionEntries entries_;
  std::uint64_t generation_ = 0;  ///< generation of the region that was offered last
  std::list<Endpoint> endpoints_;
};

}  // namespace cluster::shm
