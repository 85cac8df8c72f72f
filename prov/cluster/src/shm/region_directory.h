// The target's side of RMA without the target: the registered memory of one domain, as its peers on this node see it
// (shm/region_layout.h says how they use it).
//
// Nothing is shared, and no socket is open, before the first region is offered.
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

/// The initiators that have the table of a domain: what each of them uses now, and whether it is alive. A close asks them;
/// shm/region_layout.h says why that is enough.
///
/// An initiator takes no descriptor, since the server closes its connection after the welcome. It says in its page when it has
/// ended. Whether its process has ended is asked by the number of the process, when a close waits for it.
class RegionUsers {
 public:
  RegionUsers(Clock& clock, Log& log) : clock_(clock), log_(log) {}

  /// An initiator has come, through the server `via`. `welcome(socket)` is called once it is listed.
  /// The socket is taken only where nothing else here says when the initiator's process ends.
  template <typename Welcome>
  void add(os::LocalSocket& socket, os::SharedMemory page, const void* via, Welcome&& welcome) {
    const std::shared_ptr<User> user = list(socket, std::move(page), via);
    welcome(user->socket ? user->socket : socket);
  }
  /// True when no initiator uses the entry any more; the entry is not live. False after kUseMax.
  bool wait_until_unused(std::uint32_t entry);
  /// Initiators that came through this server may begin nothing more, and have ended all accesses when this returns.
  void revoke(const void* via);
  /// Forgets initiators that are gone.
  void forget_gone();

 private:
  struct User {
    os::PeerProcess process;
    os::SharedMemory memory;
    const void* via;
    os::LocalSocket socket;  ///< where nothing else here says when the process ends
    bool kept = false;       ///< it was revoked, and did not come to an end

    bool gone() const;  ///< (system calls)
    UsePage& page() const { return *reinterpret_cast<UsePage*>(memory.bytes().data()); }
    std::uint32_t used() const { return std::atomic_ref(page().entry).load(std::memory_order_acquire); }
  };
  /// Takes the socket if it is needed.
  std::shared_ptr<User> list(os::LocalSocket& socket, os::SharedMemory page, const void* via);
  template <typename Wanted>
  std::shared_ptr<User> find(Wanted&& wanted);
  template <typename Busy>
  bool wait_while(const User& user, Busy&& busy);

  Clock& clock_;
  Log& log_;
  std::mutex mutex_;  ///< held for moments only: the progress thread takes it
  std::vector<std::shared_ptr<User>> users_;
};

/// Hands the table of a domain to initiators, for one endpoint. The progress thread serves, so the target's application need
/// not make a call. An initiator connects, sends its use page, and is answered at once. One that sends nothing is dropped
/// after some milliseconds, and the next one waits that long. Where the endpoint has a key both show it first
/// (shm/greeting.h).
class RegionServer {
 public:
  /// `table`, of which `welcome` speaks, and `users` outlive it.
  RegionServer(const SocketAddress& endpoint, const RegionWelcome& welcome, const os::Descriptor& table,
               RegionUsers& users, Random& random, Log& log)
      : endpoint_(endpoint), welcome_(welcome), table_(table), users_(users), random_(random), log_(log) {}
  RegionServer(const RegionServer&) = delete;
  RegionServer& operator=(const RegionServer&) = delete;
  /// Waits for accesses under way.
  ~RegionServer();

  /// Listens, once; the log says why that is not possible. `keys`: of the endpoint.
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
  std::optional<HelloReceiver> initiator_;  ///< accepted, and its hello has not come
  bool waited_ = false;                     ///< for that
  os::LocalSocket dismissed_;  ///< closed in the next call, when the progress thread does not watch it
  std::shared_ptr<void> progress_client_;
};

class RegionDirectory final : public carrier::RegionOffers {
 public:
  /// The keys of an endpoint, by its name.
  using KeysOf = std::function<seal::JobKeys(const SocketAddress&)>;
  static seal::JobKeys no_keys(const SocketAddress&) { return {}; }

  /// They outlive the directory.
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
  std::mutex mutex_;  ///< of all below; not held while uses are waited for
  bool opened_ = false;
  os::Descriptor file_;
  os::SharedMemory memory_;  ///< empty if there can be none
  os::GuardPage guard_;
  RegionEntries entries_;
  std::uint64_t generation_ = 0;  ///< of the region that was offered last
  std::list<Endpoint> endpoints_;
};

}  // namespace cluster::shm
