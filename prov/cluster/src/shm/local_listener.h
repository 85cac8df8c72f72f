// Shared memory with the peers of this node. Each endpoint listens on an abstract UNIX socket named after
// its address. The name lives in the network namespace: containers and virtual nodes are apart by
// themselves, and a crash leaves nothing behind. An endpoint that wants to send connects, shows its
// credentials and that it has the key of the job, and passes a memfd with one ring that only it writes. Each direction of
// a pair has a ring of its own, with an Outbox at the sender and an Inbox at the receiver.
//
// The connection lives until the receiver has the ring. From then on either end says in the ring when it closes, a handle
// of the process (os/peer_process.h) at the inbox tells when it has died, and each rings the one doorbell of the other
// endpoint (os/local_socket.h). So a peer takes one descriptor, and none beyond the limit of handles.
//
// The listener is an interface, so that the engine can be tested with listeners that admit the peers a test wants.
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
  bool single_copy = true;               ///< large messages directly from memory to memory, where permitted
  seal::JobKeys keys = {};               ///< peers have one of them; empty: peers have none
};

/// The outbox, or why the peer is not reached by shared memory, in words for the log.
struct Connection {
  std::unique_ptr<Outbox> outbox;
  std::string reason;
  bool later = false;  ///< the peer's queue of connections is full: try again soon
};

class LocalListener {
 public:
  virtual ~LocalListener() = default;
  /// Never blocks. A refusal other than `later` is final for now: the peer is then reached over the network.
  virtual Connection connect(const SocketAddress& peer) = 0;
  /// Takes connections that came in since the last call (a system call).
  virtual void accept(std::vector<std::unique_ptr<Inbox>>& inboxes) = 0;
  /// Readable when a connection waits for accept().
  virtual int descriptor() const = 0;
  /// Readable when a peer has rung, until clear_doorbell(). The caller must request the doorbells again.
  virtual int doorbell() const = 0;
  virtual void clear_doorbell() = 0;
  /// True if a connection has come in whose hello has not: accept() again soon.
  virtual bool has_half_open() const = 0;
};

/// Null if no shared memory can be offered under this name; `reason` says why.
std::unique_ptr<LocalListener> open_listener(const SocketAddress& name, std::uint64_t epoch,
                                             const ShmSettings& settings, const Environment& environment,
                                             std::string& reason);

}  // namespace cluster::shm
