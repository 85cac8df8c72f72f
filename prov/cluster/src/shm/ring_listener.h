// Accepts and opens the shared-memory connections of one endpoint, and checks who the peers are.
//
// A connection is half-open until its hello has arrived. At most kHalfOpenMax connections are half-open, and
// further ones wait in the kernel's queue. Without a key, a process sends its hello as soon as it has
// connected. With a key, it first waits for the listener's proof (greeting.h). If the process dies before its
// hello, its connection ends. A stopped or hostile process may neither send a hello nor die. Its connection
// stays half-open for kHelloTime, and after that until another connection needs the place.
//
// Any user can fill the kernel's queue. So connections of other users are refused at once, but one call of
// accept() spends at most 2 ms on them. If a connector finds the queue full, it tries again later
// (LocalListener::connect).
//
// A peer whose connection waits in the kernel's queue believes that its messages arrive. So this process must
// accept the connection even if it has no free descriptor. In this case it frees the spare descriptors of the
// process (os/descriptor.h) while it accepts the connection and maps the ring. A mapped ring needs no
// descriptor. If the hello of such a connection has not arrived yet, this side refuses the peer and tells it
// so. If there is no memory for a ring, the listener keeps the hello for the next call of accept().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "os/descriptor.h"
#include "os/local_socket.h"
#include "shm/greeting.h"
#include "shm/hello.h"
#include "shm/layout.h"
#include "shm/local_listener.h"
#include "shm/ring_inbox.h"

namespace cluster::shm {

class RingListener final : public LocalListener {
 public:
  RingListener(const SocketAddress& name, std::uint64_t epoch, const ShmSettings& settings,
               KeyedListener listener, std::shared_ptr<os::Doorbell> doorbell, std::uint64_t doorbell_number,
               const Environment& environment);

  Connection connect(const SocketAddress& peer) override;
  void accept(std::vector<std::unique_ptr<Inbox>>& inboxes) override;
  int descriptor() const override { return listener_.descriptor(); }
  int doorbell() const override { return doorbell_->descriptor(); }
  void clear_doorbell() override { doorbell_->clear(); }
  bool has_half_open() const override { return !half_open_.empty(); }

  static constexpr std::size_t kHalfOpenMax = 64;
  static constexpr Duration kHelloTime = 1s;

 private:
  /// A connection. It also contains the hello and the ring once they have arrived.
  struct HalfOpen {
    HelloReceiver connection;
    Time since;
    std::optional<Hello> hello = std::nullopt;
    os::Descriptor ring = {};
  };
  using Inboxes = std::vector<std::unique_ptr<Inbox>>;

  void accept_connections(Inboxes& inboxes);
  bool accept_exhausted(Inboxes& inboxes);
  void refuse_exhausted(const os::LocalSocket& socket);
  void note_exhausted(const SocketAddress& peer);
  void note_memory(const RingInbox& inbox);
  /// Attaches the ring of the connection, or refuses it. Returns false if the hello has not arrived, if the
  /// kernel does not say yet which user has connected, or if there is no memory.
  bool settle(HalfOpen& half_open, Inboxes& inboxes);
  bool receive_hello(HalfOpen& half_open);
  void make_place();
  bool has_place();
  std::unique_ptr<Inbox> attach(const HalfOpen& half_open);
  void refuse_foreign(Time now, const os::LocalSocket& socket);
  void refuse(const std::string& peer, const std::string& reason);

  SocketAddress name_;
  std::uint64_t epoch_;
  Geometry geometry_;
  bool single_copy_;
  seal::JobKeys keys_;
  /// The secret that peers read in this process's memory. Its address never changes.
  std::unique_ptr<const std::uint64_t> proof_;
  KeyedListener listener_;
  std::shared_ptr<os::Doorbell> doorbell_;  ///< shared with inboxes and outboxes, which may outlive this
  std::uint64_t doorbell_number_;
  Environment environment_;
  std::vector<HalfOpen> half_open_;
  std::shared_ptr<os::SpareDescriptors> spares_ = os::SpareDescriptors::of_process();
  Time next_refusal_{};  ///< before this time refusals are not logged, because any process can cause many
  bool logged_accept_failed_ = false;
  bool logged_not_opened_ = false;
  bool logged_refused_ = false;
  bool logged_memory_unreached_ = false;
};

}  // namespace cluster::shm
