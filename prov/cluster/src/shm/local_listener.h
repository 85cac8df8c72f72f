// Shared memory with the peers of this node. Each endpoint listens on an abstract UNIX socket named after its
// address. The name lives in the network namespace, so containers and virtual nodes are separate, and a crash
// leaves nothing behind. An endpoint that wants to send connects, shows its credentials, proves that it has
// the key of the job, and passes a memfd with one ring. Only this endpoint writes the ring. Each direction of
// a pair has a ring of its own, with an Outbox at the sender and an Inbox at the receiver.
//
// The connection lives until the receiver has the ring. From then on either end says in the ring when it
// closes. A handle of the peer's process (os/peer_process.h) at the inbox tells when that process has died.
// To wake each other, both endpoints ring the one doorbell that each has (os/local_socket.h). So a peer takes
// one descriptor, or none once the limit of handles is reached.
//
// The listener is an interface, so that the engine can be tested with listeners that admit the peers a test
// wants.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/environment.h"
#include "seal/job_key.h"
#include "shm/inbox.h"
#include "shm/outbox.h"

namespace cluster::shm {

struct ShmSettings {
  std::size_t ring_bytes = 1024 * 1024;  ///< payload capacity of the rings this side creates
  bool single_copy = true;  ///< copy large messages directly from memory to memory, where permitted
  seal::JobKeys keys = {};  ///< each peer has one of these; empty: peers have no key
};

/// The outbox, or the reason for the log why shared memory does not reach the peer.
struct Connection {
  std::unique_ptr<Outbox> outbox;
  std::string reason;
  bool later = false;  ///< the peer's queue of connections is full: try again soon
};

class LocalListener {
 public:
  virtual ~LocalListener() = default;
  /// Opens a ring to the peer, without blocking. A failure without `later` is final for now: messages then
  /// take the network.
  virtual Connection connect(const SocketAddress& peer) = 0;
  /// Accepts the connections that came in since the last call (a system call).
  virtual void accept(std::vector<std::unique_ptr<Inbox>>& inboxes) = 0;
  /// Returns a descriptor that is readable when a connection waits for accept().
  virtual int descriptor() const = 0;
  /// Returns a descriptor that is readable from when a peer rings until clear_doorbell(). The caller must
  /// then request the doorbells again.
  virtual int doorbell() const = 0;
  virtual void clear_doorbell() = 0;
  /// True if a connection still waits for its hello: call accept() again soon.
  virtual bool has_half_open() const = 0;
};

/// Opens the listener of this name. Returns null if it cannot offer shared memory; `reason` says why.
std::unique_ptr<LocalListener> open_listener(const SocketAddress& name, std::uint64_t epoch,
                                             const ShmSettings& settings, const Environment& environment,
                                             std::string& reason);

}  // namespace cluster::shm
