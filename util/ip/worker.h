// One queue of the interface, one endpoint, one thread. The kernel keeps the packets of a connection in one queue, and
// queue N of a node exchanges messages with queue N of every other: so workers share nothing, and packets keep their
// order.
//
// The turn: read completions, which are packets for this node; read packets of this node, which go to their peers;
// sleep until one of both has something. A worker never waits for a peer: what a peer does not take is dropped, as by
// any network.
//
// A worker greets each node until it has answered, and again when a packet to it has failed. A greeting that fails says
// that the node is down. A node that starts greets all others, so a restarted node is back at once.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "address.h"
#include "descriptor.h"
#include "endpoint.h"
#include "nodes.h"
#include "packet.h"
#include "peers.h"

namespace cluster::ip {

struct WorkerSettings {
  std::vector<OwnAddress> addresses;
  std::string node_address;  ///< of this node
  std::uint16_t port = 0;    ///< of queue 0; the others follow
  std::uint8_t queues = 1;
  std::chrono::microseconds spin{0};  ///< how long it looks before it sleeps
};

/// Written by one thread, read by any.
class Count {
 public:
  void add(std::uint64_t more) { value_.store(value() + more, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct Counts {
  Count sent, sent_bytes, received, received_bytes;
  Count no_node;   ///< dropped: no node has the address
  Count too_many;  ///< dropped: the peer takes packets more slowly than they come
  Count failed;    ///< lost: the peer was gone
  Count refused;   ///< dropped: no packet, or not between addresses of its sender and of this node
};

class Worker {
 public:
  /// Throws std::runtime_error with one line.
  Worker(const WorkerSettings& settings, unsigned queue, const Descriptor& tun,
         const std::vector<Node>& nodes);
  ~Worker();

  /// Runs until stop().
  void run();

  // --- from other threads ---
  /// Nodes that the worker does not know yet become its peers.
  void learn(const std::vector<Node>& nodes);
  void stop();
  const Counts& counts() const { return counts_; }

 private:
  struct Slot;

  void post(Buffer& buffer);
  bool read_completions();
  void completed(const fi_cq_data_entry& entry, fi_addr_t source);
  void report_failure();
  void arrived(fi_addr_t source, const Arrival& arrival);
  void deliver_due(Peer& peer);
  void give_up_missing();
  void deliver(Peer& peer, const Arrival& arrival);
  void deliver_packet(Peer& peer, Message message);
  void greeted(Peer& peer, const Greeting& greeting);

  bool read_packets();
  void forward(Slot*& slot, std::size_t length);
  void send(Peer& peer, Slot*& slot, std::size_t length);
  void on_its_way(Peer& peer, Slot& slot, Operation::Kind kind, std::size_t share);
  Slot* free_slot();
  void release(Slot* slot);

  void greet(Peer& peer, bool wants_answer);
  void greet_due(Clock::time_point now);
  void lost(Peer& peer, const std::string& cause);
  void complain(Peer& peer, const std::string& line);
  void take_new_nodes();
  void sleep();

  bool is_own(const Address& address) const;
  bool is_group(const Address& address) const;

  const WorkerSettings settings_;
  const unsigned queue_;
  const int tun_;
  Endpoint endpoint_;
  Peers peers_;
  Counts counts_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::size_t held_bytes_ = 0;  ///< of messages that wait for their predecessors
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_slots_;
  Descriptor wake_;
  std::atomic<bool> stopped_{false};
  std::mutex new_nodes_lock_;
  std::vector<Node> new_nodes_;
};

}  // namespace cluster::ip
