// The protocol of one endpoint: turns orders into segments and segments into completions. It knows
// messages, matching and credit; it knows nothing of frames, rings or threads, and of time only what its
// budget of pulls is told.
//
//   send.cc        a message goes out: at once if there is room, else in its turn
//   eager.cc       small messages: the parts arrive, are matched or stored; credit
//   rendezvous.cc  large messages: announce, pull, bulk, done - both sides of each
//   direct.cc      the same between processes that reach each other's memory
//   put.cc         remote writes, both sides
//   get.cc         remote reads, both sides
//   atomic.cc      remote atomics, both sides; atomic_arithmetic.cc is their arithmetic
//   datagram.cc    messages of which nothing is promised, both sides
//   multi_receive.cc  buffers that take many messages
//   receive.cc     receives are posted, look into the store, are cancelled
//   messenger.cc   turns (pump), outcomes, loss of a peer
//
// The engine calls it from behind its door and drives the carriers; the messenger only posts to
// them. Nothing here blocks: what finds no room is kept in its channel and tried again by pump().
#pragma once

#include <algorithm>
#include <vector>

#include "base/counters.h"
#include "base/pool.h"
#include "protocol/channel.h"
#include "protocol/completion.h"
#include "protocol/match_queue.h"
#include "protocol/pull_budget.h"
#include "protocol/region_table.h"

namespace cluster::protocol {

/// Asked only when an endpoint wants to know where its messages came from.
class Directory {
 public:
  virtual ~Directory() = default;
  /// The address handle of a channel's peer, or kAddrNotAvail.
  virtual std::uint64_t handle_of(const Channel& channel) = 0;
};

struct MessengerSettings {
  std::size_t send_requests_max = 4096;
  std::uint64_t eager_credit = 2048 * 1024;  ///< what one sender may have waiting here, charged bytes
  std::size_t unexpected_max = 1024 * 1024;  ///< messages that wait for their receive
  std::size_t unexpected_hard_max = 2 * 1024 * 1024;  ///< the same with those of peers who are waited for
  std::size_t unexpected_bytes_max = std::size_t{2} << 30;  ///< what they hold of bytes
  std::size_t pull_window = 1024 * 1024;  ///< bytes pulled and not arrived yet, over all senders
};

class Messenger {
 public:
  Messenger(const MessengerSettings& settings, Counters& counters, Directory& directory);

  void attach(const EndpointBindings& bindings) { bindings_ = bindings; }

  // --- from the application ---
  /// `channel` has a carrier. none: taken; again: no room, repeat after progress.
  Status send(Channel& channel, const SendOp& order);
  /// `from` null: from anyone.
  Status receive(Channel* from, const RecvOp& order);
  bool cancel(const void* context);
  /// Remote write and read. As send().
  Status put(Channel& channel, const WriteOp& order);
  Status get(Channel& channel, const ReadOp& order);
  Status atomic(Channel& channel, const AtomicRmaOp& order);

  // --- from the carriers, by the engine ---
  /// False if the segment begins a message that no receive waits for and the store has no room left: then it
  /// is left with its carrier, and all behind it whose order means something, until there is.
  bool ready(const Channel& channel, const wire::Segment& segment) {
    return !scarce_ || ready_though_scarce(channel, segment);
  }
  /// `segment` is one that ready() was true for.
  void arrive(Channel& channel, const wire::Segment& segment, ConstBytes payload,
              const ArrivalInfo& info = {});
  void delivered(Token token);
  /// Posts what waited for free bytes in a carrier. With a time: also lends out the pull budget of stalled
  /// peers; called after the arrivals up to `now` have been processed.
  void pump();
  void pump(Time now) {
    if (far_.deadline() <= now && far_.check_stalls(now)) schedule_pulls(far_);
    if (busy()) pump();
  }
  /// What has been posted so far leaves the flows at `now`.
  void on_transmit(Time now) { far_.on_transmit(now); }
  /// The same for one channel; true if nothing is left to do there.
  bool pump(Channel& channel);
  /// The peer is lost: everything under way with it ends with `status`, and the channel starts
  /// afresh. Messages that had arrived whole stay. With `directed`, receives that wait for this
  /// peer alone end too.
  void fail(Channel& channel, Status status, bool directed);
  /// Tells the peer something outside the order of messages.
  void say(Channel& channel, const wire::Segment& segment);

  // --- datagrams: a whole message each ---
  void datagram_left(const SendOp& order);
  void arrive_datagram(Channel& channel, const wire::Segment& segment, ConstBytes payload);

  /// Tells the peer again what it may know already, to see whether it is there.
  void remind(Channel& channel);

  /// When pump(now) wants to be called at the latest.
  Time deadline() const { return far_.deadline(); }

  /// True if some operation is under way.
  bool under_way() const { return sends_.alive() + receives_.alive() != 0; }
  /// Calls visit(channel) for the peer of each receive that waits for one peer alone.
  template <typename Visit>
  void each_directed(Visit&& visit) {
    tagged_.each_directed(visit);
    untagged_.each_directed(visit);
  }

  /// Operations of this side that find room yet. What is kept to answer peers does not count.
  std::size_t tx_size_left() const {
    return settings_.send_requests_max - std::min(sends_.alive() - serves_, settings_.send_requests_max);
  }
  /// Messages that wait for their receive.
  std::size_t stored() const { return messages_.alive(); }
  /// True if anything here still names the channel.
  bool references(const Channel& channel) const;

  bool busy() const { return !busy_.empty() || !direct_.empty(); }
  bool control_pending() const { return !spoken_.empty(); }
  /// Channels that were told something outside an order of theirs since the last call: whoever
  /// drives their carriers has to see that it leaves.
  template <typename Visit>
  void take_control_pending(Visit&& visit) {
    for (Channel* channel : spoken_) {
      channel->spoken = false;
      visit(*channel);
    }
    spoken_.clear();
  }

 private:
  // send.cc
  bool post_at_once(Channel& channel, const SendOp& order, Status& outcome);
  Status enqueue(Channel& channel, const SendOp& order);
  SendRequest* take_request(Channel& channel, const SendOp& order);
  bool advance(SendRequest& request);
  bool advance_eager(SendRequest& request);
  void settle(SendRequest& request);
  bool held_up(const Channel& channel, SendRequest::Verb verb) const;
  bool must_wait(const SendRequest& request) const;
  void keep_injected(SendRequest& request, const Gather& payload);
  void launch(SendRequest& turn);
  // eager.cc
  void on_eager(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  void on_eager_next(Channel& channel, ConstBytes payload);
  bool ready_though_scarce(const Channel& channel, const wire::Segment& segment);
  void note_store();
  void keep_bytes(UnexpectedMessage& message);
  /// Null if the store is full.
  UnexpectedMessage* store(Channel& channel, const wire::Segment& segment, std::size_t total);
  void assembled(Channel& channel);
  void release(Channel& channel, std::uint64_t charge);
  void on_credit(Channel& channel, const wire::Segment& segment);
  // rendezvous.cc
  void on_announce(Channel& channel, const wire::Segment& segment);
  void start_pulling(RecvRequest& receive);
  static wire::Segment pull_for(const RecvRequest& receive, std::size_t piece);
  PullBudget& budget_of(const Channel& channel);
  static std::size_t next_pull(const RecvRequest& receive, const PullBudget& budget);
  void schedule_pulls(PullBudget& budget);
  void on_pull(Channel& channel, const wire::Segment& segment);
  void on_bulk(Channel& channel, const wire::Segment& segment, ConstBytes payload, const ArrivalInfo& info);
  void on_done(Channel& channel, const wire::Segment& segment);
  void account_for(RecvRequest& receive, std::size_t offset, std::size_t bytes, const ArrivalInfo& info);
  void finish(SendRequest& request);
  void arrived_whole(RecvRequest& receive);
  void abandon(RecvRequest& receive, Status status);
  bool stream(SendRequest& request);
  // direct.cc
  static void offer_memory(const SendRequest& request, wire::Segment& announcement);
  void begin_direct(RecvRequest& receive);
  static std::size_t next_place(const RecvRequest& receive);
  static void offer_place(const RecvRequest& receive, wire::Segment& pull);
  void fetch();
  void fetch_piece(RecvRequest& receive);
  bool place(SendRequest& request, const PullRange& range);
  void on_placed(Channel& channel, const wire::Segment& segment, const ArrivalInfo& info);
  // put.cc
  void put_one(Channel& channel, const WriteOp& order, const RmaIov& remote, std::size_t base,
               RmaGroup* group);
  static std::uint64_t whole_length(Channel& channel, const wire::Segment& range);
  bool advance_put(SendRequest& request);
  void on_put(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  void on_put_next(Channel& channel, ConstBytes payload);
  void on_put_announce(Channel& channel, const wire::Segment& segment);
  void write_landing(Channel& channel, ConstBytes payload);
  void landed(const Channel& channel, const wire::Segment& first, std::uint64_t whole);
  void refuse_put(Channel& channel, std::uint32_t id);
  void on_failed(Channel& channel, const wire::Segment& segment);
  // get.cc
  void get_one(Channel& channel, const ReadOp& order, const RmaIov& remote, std::size_t base,
               RmaGroup* group);
  void on_get(Channel& channel, const wire::Segment& segment);
  bool serve(SendRequest& request);
  void was_read(const RmaIov& range);
  void refuse_get(Channel& channel, std::uint32_t reader);
  void on_get_failed(const Channel& channel, const wire::Segment& segment);
  // atomic.cc
  void atomic_one(Channel& channel, const AtomicRmaOp& order, const RmaIov& remote, std::size_t base,
                  RmaGroup* group);
  void keep_injected_atomic(SendRequest& request, const AtomicRmaOp& order);
  bool advance_atomic(SendRequest& request);
  void on_atomic(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  void was_changed(const wire::Segment& segment, bool fetch);
  void answer(Channel& channel, const wire::Segment& part, ConstBytes before);
  bool serve_answer(SendRequest& request);
  void on_fetched(Channel& channel, const wire::Segment& segment, ConstBytes payload);
  void answered(SendRequest& request, Status status);
  // multi_receive.cc
  Status post_buffer(Channel* from, const RecvOp& order);
  RecvRequest* cut(RecvRequest& buffer, std::size_t total);
  void close_buffer(RecvRequest& buffer, Status status);
  void end_buffer(RecvRequest& buffer, bool told);
  void end_piece(RecvRequest& piece, Status status);
  // receive.cc
  RecvRequest* match(Channel& channel, bool tagged, std::uint64_t tag, std::size_t total);
  void fill(RecvRequest& receive, const RecvOp& order, Channel* from);
  void take(RecvRequest& receive, UnexpectedMessage& message);
  void discard(UnexpectedMessage& message);
  void peek(Channel* from, const RecvOp& order);
  void hand_over(RecvRequest& receive, UnexpectedMessage& message);
  // messenger.cc
  void take_turns(Channel& channel);
  void mark_busy(Channel& channel);
  void speak(Channel& channel);
  void confirm(Channel& channel, std::uint32_t id);
  void complete(SendRequest& request, Status status);
  void report(Completion::Kind kind, RmaGroup* group, void* context, bool wanted, Status status,
              const SocketAddress& peer);
  RmaGroup* group_for(const RmaOp& order);
  void report_send(const SendOp& order);
  void report_message(const SendRequest& request, Status status);
  void report_message(const RecvRequest& receive, Status status);
  void complete(RecvRequest& receive, Status status);
  void drop(UnexpectedMessage& message);
  void refuse() { ++counters_.refused_segment; }

  MatchQueue& queue(bool tagged) { return tagged ? tagged_ : untagged_; }

  MessengerSettings settings_;
  Counters& counters_;
  Directory& directory_;
  EndpointBindings bindings_;
  Pool<SendRequest> sends_;
  std::size_t serves_ = 0;  ///< of them, answers to peers' reads and atomics
  Pool<RecvRequest> receives_;
  Pool<UnexpectedMessage> messages_;
  Pool<RmaGroup> groups_;
  Pool<AtomicCall> atomics_;
  MatchQueue tagged_;
  MatchQueue untagged_;
  List<RecvRequest, &RecvRequest::direct> direct_;  ///< those whose sender's memory is in reach
  std::size_t unexpected_bytes_ = 0;                ///< of messages_
  bool scarce_ = false;                             ///< somebody may have filled its part of the store
  PullBudget far_;                                  ///< of what is pulled across the network...
  PullBudget near_;                                 ///< ...and from this node
  std::vector<Channel*> busy_;
  std::vector<Channel*> spoken_;
};

}  // namespace cluster::protocol
