// The protocol's part of the frame lane (reliability/frame_lane.h), for remote writes. The class sends a
// short write if nothing has to be posted before the write, executes a peer's short write, and completes a
// write of this side. If a condition of the lane does not hold, send() and execute() return false, and
// answered() returns null. They change nothing then, and the general path takes over (RemoteAccess,
// RmaTarget). The rules of ordering are those of the general path.
#pragma once

#include "base/bytes.h"
#include "protocol/messenger.h"

namespace cluster::protocol {

class ShortWrites : MessengerParts {
 public:
  explicit ShortWrites(const Messenger& messenger) : MessengerParts(messenger.parts()) {}

  /// Sends the write, which has one range and no options, by post(header). If the carrier does not take the
  /// write, post() returns false. The write is complete when the peer answers. Returns false if the write was
  /// not sent.
  template <typename Post>
  bool send(Channel& channel, const WriteOp& op, Post&& post) {
    const RmaState& rma = channel.rma;
    const bool first = channel.tx.empty() && rma.writes_announced == 0 && rma.reads == 0;
    const bool by_peer = rma.reached.access == nullptr;
    if (!first || !by_peer || op.length > channel.eager_max || outgoing_.left() == 0) [[unlikely]]
      return false;
    WriteRequest& request = outgoing_.acquire_posted(channel, op);
    const RmaIov& range = request.range.remote;
    if (!post(wire::WriteHeader{.length = static_cast<std::uint32_t>(range.length),
                                .id = request.id,
                                .address = range.address,
                                .key = range.key})) [[unlikely]] {
      outgoing_.withdraw(request);
      return false;
    }
    context_.counters.bytes_sent += op.length;
    return true;
  }

  /// Executes a write of the peer and reports the write. The caller answers it. Returns false if parts of an
  /// earlier write of the peer are still missing, or if the peer may not write to this memory.
  bool execute(Channel& channel, const wire::WriteHeader& header, const std::byte* payload) {
    const IncomingWrite& earlier = channel.incoming_write;
    if (earlier.open || earlier.ranges_length != 0 || !context_.may_access(channel, header.key)) return false;
    const RemoteWrite write{.iov = {header.address, header.key, header.length},
                            .length_so_far = header.length};
    return context_.bindings.regions->with(write.iov, Access::write,
                                           [&](std::byte* target, const MemoryRegion& region) {
                                             copy_short(target, payload, header.length);
                                             reporter_.written_by_peer(channel, write, &region);
                                           });
  }

  /// Returns the write of this side that the answer with this id completes. Returns null if there is no such
  /// write, or if it needs more than this answer.
  WriteRequest* answered(const Channel& channel, std::uint32_t id) {
    return outgoing_.find_posted_write(channel, id);
  }
  void complete(WriteRequest& request, DirectSuccesses& direct) { outgoing_.succeeded(request, direct); }
  /// Sends the answer to a write by the general path.
  void answer(Channel& channel, std::uint32_t id) { control_.send_done(channel, id); }
};

}  // namespace cluster::protocol
