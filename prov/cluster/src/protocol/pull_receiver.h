// Pulls bytes from peers: for announced messages, for remote reads of this side, and for large remote writes
// of peers. One budget covers all senders that this side reaches over the network. It limits the bytes that
// this side has requested from them and not received. Another budget does the same for all other senders
// (pull_budget.h). Therefore even many senders cannot overrun one receiver (as in Homa and CLIC). The bytes
// of a request may arrive in any order. This side copies each arriving byte once, from the carrier into the
// application's buffer.
#pragma once

#include "protocol/direct_copy.h"
#include "protocol/multi_receive.h"
#include "protocol/pull_budget.h"
#include "wire/admit.h"

namespace cluster::protocol {

class PullReceiver {
 public:
  PullReceiver(const Context& context, ControlSender& control, CompletionReporter& reporter);

  IncomingPool& pool() { return pool_; }
  const IncomingPool& pool() const { return pool_; }
  MultiReceive& multi_receive() { return multi_; }

  /// Begins to pull the bytes of a request. The caller must have set the request's channel, length and
  /// source.
  void start(IncomingRequest& request);
  void on_bulk(Channel& channel, const wire::Segment& segment, ConstBytes payload, const ArrivalInfo& info);
  /// Returns the memory in which the payloads of the run belong if it is one piece of a receive or of a read.
  Bytes place_of_run(const Channel& channel, const wire::RunView& run);
  /// Like on_bulk(), for a run of bulk segments that continue each other.
  void on_bulk_run(Channel& channel, const wire::RunView& run, const ArrivalInfo& info);
  void on_placed(Channel& channel, const wire::Segment& segment, const ArrivalInfo& info);
  /// Called when the peer has answered the segment `expose` or `expose_region` of this side. The answer
  /// either names the memory that the RDMA device of this side may read, or refuses.
  void on_exposed(Channel& channel, const wire::Segment& segment);
  /// Called when a device has read the first `bytes` bytes for a request, and reads no more.
  void device_read(Channel& channel, std::uint32_t id, std::size_t bytes);
  /// Ends the writes of peers for which a device writes to this region, which has been closed. 0: to any
  /// region.
  void end_device_writes(std::uint64_t region);
  /// Called when a read of this side has failed at the target.
  void on_read_failed(Channel& channel, const wire::Segment& segment);

  /// Ends a request whose bytes will not arrive.
  void abandon(IncomingRequest& request, Status status);
  /// Reports a request and releases it.
  void complete(IncomingRequest& request, Status status);

  /// Returns true if this side copies no bytes directly from a sender's memory, so that copy_in() has nothing
  /// to do.
  bool idle() const { return direct_.idle(); }
  /// Returns true if a device is reading messages of peers, or may soon begin.
  bool device_reading() const { return device_reads_ != 0; }
  /// For each request whose bytes this side can read from the sender's memory, copies one piece.
  void copy_in();
  /// Distributes the budget again after a peer is lost, because the peer's share has become free.
  void reschedule();
  void check_stalls(Time now) {
    if (found_budget_.deadline() <= now && found_budget_.check_stalls(now)) schedule(found_budget_);
  }
  Time deadline() const { return found_budget_.deadline(); }
  void on_transmit(Time now) { found_budget_.on_transmit(now); }

 private:
  PullBudget& budget_of(const Channel& channel) {
    return channel.carrier != nullptr && !channel.carrier->traits().dates_pulls ? fixed_budget_
                                                                                : found_budget_;
  }
  bool ask_for_device(IncomingRequest& request);
  Bytes device_target(IncomingRequest& request);
  void release_region(IncomingRequest& request);
  void end_grant(ReadRequest& read, std::size_t bytes);
  void end_device(IncomingRequest& request);
  void schedule(PullBudget& budget);
  void report_written(const WriteTarget& target);
  IncomingRequest* find_requested(const Channel& channel, const wire::Segment& segment, std::size_t bytes);
  bool store(const IncomingRequest& request, std::size_t offset, const wire::RunView& run);
  void account(IncomingRequest& request, std::size_t offset, std::size_t bytes, const ArrivalInfo& info);
  void finish(IncomingRequest& request);

  const Context& context_;
  ControlSender& control_;
  CompletionReporter& reporter_;
  IncomingPool pool_;
  MultiReceive multi_;
  DirectCopy direct_;
  PullBudget found_budget_;       ///< limits the pulls that a transport dates (carrier::Traits)
  PullBudget fixed_budget_;       ///< limits all other pulls
  std::size_t device_reads_ = 0;  ///< requests whose PullProgress::device is not `none`
  List<WriteTarget, &WriteTarget::holds> holding_;
};

}  // namespace cluster::protocol
