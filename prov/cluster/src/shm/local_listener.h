// Opens shared memory to the peers of this node. Each endpoint listens on an abstract UNIX socket, which is
// named after the endpoint's address. Such a name belongs to a network namespace, so containers and virtual
// nodes are separate. The name disappears with the process, so a crash leaves nothing behind. To send to a
// peer, an endpoint connects to the peer's socket. The connecting endpoint shows its credentials, proves that
// it has the job's key if there is one, and sends a memfd with one ring. Only the connecting endpoint posts
// segments to this ring. So a pair of endpoints has one ring for each direction, with an Outbox at the sender
// and an Inbox at the receiver.
//
// The connection is kept until the receiver has attached the ring. From then on each end says in the ring
// when it closes. The inbox has a handle of the peer's process (os/peer_process.h), which tells when the
// process has died. Each endpoint has one doorbell (os/local_socket.h), which its peers ring to wake it. So a
// peer costs one descriptor, that of the handle, or none if the limit of handles is reached.
//
// The listener is an interface, so that tests can decide which peers the engine has.
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
  std::size_t ring_bytes = 1024 * 1024;  ///< payload capacity of the rings that this side creates
  /// True to copy large messages directly between the memories of two processes, if the kernel permits it.
  bool single_copy = true;
  seal::JobKeys keys = {};  ///< each peer has one of these keys; if the list is empty, peers have no key
};

/// The result of an attempt to connect: an outbox, or the reason (for the log) why there is none.
struct Connection {
  std::unique_ptr<Outbox> outbox;
  std::string reason;
  /// True if the peer's queue of connections is full, so that the caller should soon try again.
  bool later = false;
};

class LocalListener {
 public:
  virtual ~LocalListener() = default;
  /// Opens a ring to the peer, without blocking. If there is no outbox and `later` is false, messages to the
  /// peer use the network.
  virtual Connection connect(const SocketAddress& peer) = 0;
  /// Accepts waiting connections, and appends an inbox for each connection whose hello has arrived. Makes
  /// system calls.
  virtual void accept(std::vector<std::unique_ptr<Inbox>>& inboxes) = 0;
  /// Returns a descriptor that is readable when a connection waits for accept().
  virtual int descriptor() const = 0;
  /// Returns a descriptor that becomes readable when a peer rings the doorbell, and stays readable until
  /// clear_doorbell(). After clear_doorbell() the caller must again ask its peers to ring
  /// (Inbox::request_doorbell).
  virtual int doorbell() const = 0;
  virtual void clear_doorbell() = 0;
  /// Returns true if a connection still waits for its hello. If so, the caller must soon call accept() again.
  virtual bool has_half_open() const = 0;
};

/// Opens the listener for this name. Returns null if this process cannot offer shared memory, and sets
/// `reason` to the cause.
std::unique_ptr<LocalListener> open_listener(const SocketAddress& name, std::uint64_t epoch,
                                             const ShmSettings& settings, const Environment& environment,
                                             std::string& reason);

}  // namespace cluster::shm
