// One endpoint: everything it knows, entered through one door. Single-threaded inside; the door's
// lock is taken here and nowhere below. Progress happens in poll(), which api/ calls from whatever
// reads or waits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/environment.h"
#include "base/fault.h"
#include "base/owned_lock.h"
#include "engine/address_book.h"
#include "engine/insight.h"
#include "engine/settings.h"
#include "link/link.h"
#include "os/attendant.h"
#include "protocol/completion.h"
#include "protocol/order.h"
#include "rails/pairing.h"

namespace cluster::shm {
class Host;
}

namespace cluster::engine {

class Core;

/// What an endpoint promises its application: everything, or whole messages only.
enum class Service : std::uint8_t { reliable, datagram };

/// What an engine is made of. `link` may be null (shared memory only), `host` may be null (no
/// shared memory); `keeper` is whatever must live exactly as long as the engine.
struct Parts {
  Environment environment;
  Settings settings;
  SocketAddress name;       ///< as fi_getname says it: routable, port bound
  std::uint64_t epoch = 0;  ///< real time in ns: orders the lives of one name, across restarts
  std::unique_ptr<link::Link> link;
  std::unique_ptr<shm::Host> host;
  std::shared_ptr<void> keeper;
  Service service = Service::reliable;  ///< datagrams need a link and use no host
  /// The interfaces behind `link` by number, the first being that of the name; empty: one.
  std::vector<rails::OwnRail> rails = {};
};

class Engine {
 public:
  explicit Engine(Parts parts);
  /// Waits (bounded by settings.linger) until peers have what they are owed, then goes.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const SocketAddress& name() const;
  /// Must come before the first send or receive. The book outlives the engine.
  void attach(const AddressBook& book, const protocol::Sinks& sinks);

  /// Fault::none: taken (its outcome goes to the sinks). Fault::again: no room, poll and repeat.
  /// Anything else: refused, no outcome will follow.
  Fault send(const protocol::SendOrder& order);
  Fault receive(const protocol::ReceiveOrder& order);
  Fault put(const protocol::PutOrder& order);
  Fault get(const protocol::GetOrder& order);
  Fault atomic(const protocol::AtomicOrder& order);
  /// Cancels one receive by its context. False if no such receive waits.
  bool cancel(void* context);
  /// Whatever visits attend() from another thread: let go of before the engine goes.
  void attended_by(std::shared_ptr<void> attendant) { attendant_ = std::move(attendant); }
  /// For a thread of the library's own, which never waits at the door: takes a turn if nobody has polled
  /// since the last visit, and says when to come again. Seldom, unless progress_by_itself() was asked for.
  os::Rest attend();
  /// FI_PROGRESS_AUTO: peers are served at once though nobody polls. Before attach().
  void progress_by_itself();
  /// When it next wants a turn though nothing arrives and nobody asks; kNever: not at all.
  Time next_deadline() const;
  /// What it has counted so far.
  Counters counters() const;
  /// So many more operations find room for certain.
  std::size_t room_for_sends() const;
  /// How many messages wait for their receive.
  std::size_t unexpected_messages() const;
  /// How the peer is reached: the name of a link, "shm", "self", or "none" (yet); null if the handle
  /// names nobody.
  const char* path_to(std::uint64_t handle) const;
  /// What can be seen of it now; nothing if another thread is inside.
  std::optional<Insight> insight() const;
  /// True if nobody is owed anything: what was promised has left, and what came was acknowledged.
  bool settled() const;
  /// One turn of the agenda. With `wait` false, returns at once if another thread is inside.
  void poll(bool wait = true);
  /// Becomes readable when poll() has something to do, if arm() has said so; -1 if that cannot be had.
  int descriptor();
  /// One turn, after which one may sleep on the descriptor. False if something came in (or one cannot
  /// sleep here): poll on.
  bool arm();

 private:
  mutable OwnedLock door_;
  std::unique_ptr<Core> core_;
  std::shared_ptr<void> attendant_;
};

}  // namespace cluster::engine
