// One endpoint: everything it knows, entered through one door. Single-threaded inside; the door's
// lock is taken here and nowhere below. Progress happens in poll(), which api/ calls from whatever
// reads or waits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/biased_lock.h"
#include "base/environment.h"
#include "base/status.h"
#include "engine/address_table.h"
#include "engine/endpoint_stats.h"
#include "engine/engine_settings.h"
#include "link/link.h"
#include "multipath/address_pairing.h"
#include "os/progress_thread.h"
#include "protocol/completion.h"
#include "protocol/ops.h"

namespace cluster::shm {
class LocalListener;
}

namespace cluster::engine {

class Core;

/// What an endpoint promises its application: everything, or whole messages only.
enum class EndpointType : std::uint8_t { rdm, dgram };

/// What an engine is made of. `link` may be null (shared memory only), `host` may be null (no
/// shared memory); `resources` is whatever must live exactly as long as the engine.
struct EngineParts {
  Environment environment;
  EngineSettings settings;
  SocketAddress name;       ///< as fi_getname says it: routable, port bound
  std::uint64_t epoch = 0;  ///< real time in ns: orders the lives of one name, across restarts
  std::unique_ptr<link::Link> link;
  std::unique_ptr<shm::LocalListener> host;
  std::shared_ptr<void> resources;
  EndpointType service = EndpointType::rdm;  ///< datagrams need a link and use no host
  /// The interfaces behind `link` by number, the first being that of the name; empty: one.
  std::vector<multipath::Rail> rails = {};
};

class Engine {
 public:
  explicit Engine(EngineParts parts);
  /// Waits (bounded by settings.linger) until peers have what they are owed, then goes.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const SocketAddress& name() const;
  /// Must come before the first send or receive. The book outlives the engine.
  void attach(const AddressTable& book, const protocol::EndpointBindings& bindings);

  /// Status::ok: taken (its outcome goes to the bindings). Status::again: no room, poll and repeat.
  /// Anything else: refused, no outcome will follow.
  Status send(const protocol::SendOp& order);
  Status receive(const protocol::RecvOp& order);
  Status put(const protocol::WriteOp& order);
  Status get(const protocol::ReadOp& order);
  Status atomic(const protocol::AtomicRmaOp& order);
  /// Cancels one receive by its context. False if no such receive waits.
  bool cancel(void* context);
  /// Whatever visits run_in_background() from another thread: let go of before the engine goes.
  void set_progress_client(std::shared_ptr<void> progress_client) {
    progress_client_ = std::move(progress_client);
  }
  /// For a thread of the library's own, which never waits at the door: takes a turn if nobody has polled
  /// since the last visit, and says when to come again. Seldom, unless enable_auto_progress() was asked for.
  os::NextWake run_in_background();
  /// FI_PROGRESS_AUTO: peers are served at once though nobody polls. Before attach().
  void enable_auto_progress();
  /// When it next wants a turn though nothing arrives and nobody asks; kNever: not at all.
  Time next_deadline() const;
  /// What it has counted so far.
  Counters counters() const;
  /// So many more operations find room for certain.
  std::size_t tx_size_left() const;
  /// How many messages wait for their receive.
  std::size_t unexpected_messages() const;
  /// How the peer is reached: the name of a link, "shm", "self", or "none" (yet); null if the handle
  /// names nobody.
  const char* path_to(std::uint64_t handle) const;
  /// What can be seen of it now; nothing if another thread is inside.
  std::optional<EndpointStats> stats() const;
  /// True if nobody is owed anything: what was promised has left, and what came was acknowledged.
  bool quiescent() const;
  /// One turn of the agenda. With `wait` false, returns at once if another thread is inside.
  void poll(bool wait = true);
  /// Becomes readable when poll() has something to do, if arm() has said so; -1 if that cannot be had.
  int descriptor();
  /// One turn, after which one may sleep on the descriptor. False if something came in (or one cannot
  /// sleep here): poll on.
  bool arm();

 private:
  mutable BiasedLock door_;
  std::unique_ptr<Core> core_;
  std::shared_ptr<void> progress_client_;
};

}  // namespace cluster::engine
