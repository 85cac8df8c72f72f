// What is behind an engine's door. The one room that knows every other: it drives carriers, gives
// the messenger what arrives, and tells flows the time.
//
//   poll.cc      the agenda of one turn, and the end
//   local.cc     rings: accept, receive, death of a local peer
//   network.cc   frames: the gate, sessions, control frames, timers
//   datagram.cc  all of it for an endpoint of datagrams
//   contact.cc   the way to a peer: chosen, opened, lost
//   packing.h    which messages wait for others to share a frame
//   attend.cc    turns taken while the application does something else
//   insight.cc   what can be seen of it from outside
//   sleep.cc     what wakes whoever sleeps until there is something to do
//
// Invariants: a channel has a carrier exactly while its peer can be posted to. Peers are lost only
// at the end of a turn (doom() marks them), never while somebody iterates over them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "engine/endpoint_stats.h"
#include "engine/engine.h"
#include "engine/packing_policy.h"
#include "engine/peer_table.h"
#include "engine/self_carrier.h"
#include "engine/timer_heap.h"
#include "os/wait_set.h"
#include "protocol/messenger.h"
#include "reliability/frame_body.h"

namespace cluster::engine {

class Core final : public protocol::Directory {
 public:
  explicit Core(EngineParts parts);
  ~Core() override;

  const SocketAddress& name() const { return parts_.name; }
  void attach(const AddressTable& book, const protocol::EndpointBindings& bindings);

  Status send(const protocol::SendOp& order);
  Status receive(const protocol::RecvOp& order);
  Status put(const protocol::WriteOp& order);
  Status get(const protocol::ReadOp& order);
  Status atomic(const protocol::AtomicRmaOp& order);
  bool cancel(void* context) { return messenger_.cancel(context); }
  /// One turn of everything; or of the network only if something is due there. True if something came in.
  enum class Look : std::uint8_t { everywhere, where_due };
  bool poll(Look look = Look::everywhere);
  int descriptor();
  bool arm_for_others() {
    others_sleep_ = true;
    return arm();
  }
  os::NextWake run_in_background();
  /// For the progress thread, outside the door: true if the application has polled since this was last asked,
  /// and so does what there is to do. Whoever uses the door alone must not be made to share it.
  bool looked_after();
  /// If so: when to ask again.
  os::NextWake until_next_look() const { return packing_.attended() ? kInStream : kAtLeisure; }
  void enable_auto_progress() { by_itself_.store(true, std::memory_order_relaxed); }
  static constexpr os::NextWake kAfterOthers{200us};  ///< somebody is at work here
  static constexpr os::NextWake kInStream{PackingPolicy::kStreamInterval};
  static constexpr os::NextWake kAtLeisure{10ms};  ///< nobody misses us
  Time next_deadline() const;
  bool quiescent() const;
  const Counters& counters() const { return parts_.environment.counters; }
  std::size_t tx_size_left() const { return messenger_.tx_size_left(); }
  std::size_t unexpected_messages() const { return messenger_.stored(); }
  const char* path_to(std::uint64_t handle);
  EndpointStats stats() const;

  std::uint64_t handle_of(const protocol::Channel& channel) override;

 private:
  // poll.cc
  void do_chores(std::uint64_t ticks);
  bool network_due(std::uint64_t ticks) const;
  bool poll_network();
  void transmit_spoken(Time now);
  void transmit_touched(Time now);
  void take_held_back();
  template <typename Act>
  Status with_peer(std::uint64_t handle, bool more, Act&& act);
  void linger();
  void close();
  // local.cc
  bool receive_self();
  bool receive_local(Look look);
  bool hear(Peer& peer);
  void review_locals();
  bool drain(Peer& peer, std::size_t limit);
  bool takes(Peer& peer, const wire::Segment& segment);
  void accept_local();
  void adopt(std::unique_ptr<shm::Inbox> inbox);
  void check_local_deaths();
  void check_local_death(Peer& peer);
  // network.cc
  std::size_t receive_network(Time& now);
  void dispatch(Time now, const wire::FrameView& view, const link::InFrame& frame);
  static std::optional<Duration> host_delay(Time now, const wire::FrameView& view,
                                            const link::InFrame& frame);
  Peer* addressee(Time now, const wire::FrameView& view, const link::Path& from);
  void refuse_other_life(Time now, const Peer& peer, const wire::FrameView& view, const link::Path& from);
  Peer* greet(Time now, const wire::FrameView& view, const link::Path& from);
  static bool comes_from_its_name(const wire::FrameView& view, const link::Path& from);
  SocketAddress known_as(const wire::FrameView& view);
  void on_alive(Time now, const wire::FrameView& view, const link::Path& from);
  void on_trial(const wire::FrameView& view, const link::Path& from);
  link::Path way_back(const Peer& peer, const link::Path& from) const;
  void hand_up(Peer& peer, const protocol::ArrivalInfo& info);
  static bool may_act(const Peer& peer, const wire::Segment& segment);
  void count_held();
  void resume_held(Time now);
  void on_reset(const wire::FrameView& view, const link::Path& from);
  void send_control(ConstBytes frame, const link::Path& to);
  void refuse_frame(Time now, const wire::FrameView& view, const link::Path& to, wire::ResetReason reason,
                    std::uint64_t epoch);
  void run_timers(Time now);
  bool asks() const { return messenger_.under_way() || half_open_; }
  void ask_the_silent(Time now);
  bool call_back(Time now, Peer& peer);
  void hear_complaints(Time now);
  void touch(Peer& peer);
  // datagram.cc
  Status send_datagram(Peer& peer, const protocol::SendOp& order);
  void dispatch_datagram(Time now, const wire::FrameView& view, const link::Path& from);
  void on_datagram(const wire::FrameView& view, const link::Path& from);
  // contact.cc
  bool contact(Peer& peer);
  bool is_own(const SocketAddress& name) const;
  bool contact_locally(Peer& peer, std::string& reason);
  std::unique_ptr<reliability::Flow> make_flow(Peer& peer, const link::Path& path);
  void use_flow(Peer& peer, std::unique_ptr<reliability::Flow> flow);
  void court(Time now, Peer& peer, const wire::FrameView& view, const link::Path& from);
  static bool outdone(const Peer& peer);
  void drop_suitor(Peer& peer);
  void compare_mtu(const Peer& peer, const wire::Opening& opening);
  bool room_for(Time now, const SocketAddress& name, std::size_t carried);
  bool forgettable(Time now, const Peer& peer) const;
  std::uint64_t next_epoch(Time now);
  void doom(Peer& peer, Status status);
  void lose_doomed();
  void lose(Peer& peer, Status status);
  // insight.cc
  const char* path_of(const Peer& peer) const;
  PeerStats look_at(const Peer& peer) const;
  // attend.cc
  os::NextWake attend_seldom();
  void stand_by();
  void knock_where_unheard();
  // sleep.cc
  bool arm();
  bool watch_everything();
  void heed_events();
  void ask_for_knocks();
  void watch(int descriptor, Peer& peer);
  void unwatch(int descriptor);
  void set_alarm(Time when);
  void tell_sleepers();
  /// Behind everything that may concern somebody asleep.
  void mind_sleepers() {
    if (alarm_ != Time::min()) [[unlikely]]
      tell_sleepers();
  }

  static constexpr std::size_t kPeersFew = 64;

  struct Doom {
    Peer* peer;
    Status status;
  };

  EngineParts parts_;
  reliability::BodyPool bodies_;  ///< of all flows
  PeerTable peers_;
  protocol::Messenger messenger_;
  SelfCarrier self_;
  bool self_in_use_ = false;
  std::vector<Peer*> locals_;    ///< peers with an inbox, those that have spoken lately in front
  std::size_t lively_ = 0;       ///< how many those are; before the first review all
  std::size_t next_silent_ = 0;  ///< which of the others was heard last
  std::vector<Peer*> remotes_;   ///< peers with a flow
  std::vector<Peer*> touched_;
  std::vector<Doom> doomed_;
  PackingPolicy packing_;
  std::vector<carrier::Token> tokens_;
  std::vector<std::unique_ptr<shm::Inbox>> arrivals_;
  std::array<link::InFrame, link::kBurstMax> frames_;
  Time started_;
  TimerHeap timers_;  ///< no flow has an earlier deadline than its peer's timer
  Time next_ask_ = Time{};
  bool half_open_ = false;  ///< some peer has called and not shown yet that it hears us
  Time next_complaints_ = Time{};
  Time next_reset_ = Time{};
  Time next_forgetting_ = Time{};
  std::size_t peers_enough_ = kPeersFew;  ///< remembered; beyond it strangers who are gone are forgotten
  bool flows_held_ = false;               ///< messages wait in flows for room in the store...
  bool rings_held_ = false;               ///< ...and in rings, or in the queue to oneself
  bool said_store_full_ = false;
  bool said_mtu_differs_ = false;
  std::uint64_t last_epoch_ = 0;
  std::atomic<std::uint32_t> turns_{0};  ///< written by whoever is inside the door
  std::uint32_t silent_looks_ = 0;       ///< looks at the network since it last brought something
  std::uint64_t glance_ = 0;             ///< when the last was, in ticks
  std::uint64_t accepted_ = 0;           ///< when connections were last accepted, likewise
  std::uint64_t deaths_checked_ = 0;
  std::uint32_t turns_attended_ = 0;    ///< turns_ at the end of the last visit
  std::uint64_t frames_attended_ = 0;   ///< frames received until then
  std::atomic<bool> by_itself_{false};  ///< FI_PROGRESS_AUTO
  bool others_sleep_ = false;           ///< not only the progress thread has ever slept on this engine
  std::unique_ptr<os::WaitSet> watch_;  ///< made when somebody wants to sleep
  std::unique_ptr<os::Alarm> alarm_clock_;
  Time alarm_ = Time::min();  ///< when it goes off; the least of times: it has, or nobody can be asleep
  bool unasked_ = false;      ///< a ring has come since arm() asked for knocks
  bool unwatched_ = false;    ///< a peer's descriptor found no room in the set: never sleep again
};

}  // namespace cluster::engine
