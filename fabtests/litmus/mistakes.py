"""What plant.py breaks, one at a time: a name, a file below src/, text that stands there exactly once, what it becomes, and
the programs of which one must notice: "PROGRAM SETTING [FILTER]" (plant.py). Each is a mistake that could be made in
one-sided operations; those that need a simulated clock or a killed process are the simulator's (sim/mutations.py)."""

_PERFORM = "perform(code, {target, operands, code.compares() ? operands + part : nullptr, before.data(), part});"
_SELF = "  queue_.push_back(std::move(entry));"
_EXCHANGE = ("        while (!bits.compare_exchange_weak(was, std::bit_cast<Bits>(change(std::bit_cast<Value>(was))))) {\n"
             "        }\n")
_WRITTEN = "if (last) reporter_.written_by_peer(channel, write.range, &region);"
_POSTED = "  OutgoingRequests::leave_queue(request, OutgoingRequest::State::posted);\n  return true;"

MISTAKES = [
    ("loses an operation on oneself", "self/self_transport.cc", _SELF,
     "  if (segment.kind != wire::SegmentKind::atomic || segment.id % 16 != 3) queue_.push_back(std::move(entry)); "
     "else bytes_ -= payload.length;",
     ["histories node", "conformance node Rma.OnesOwn*:Atomic.ManySides*"]),
    ("executes an operation on oneself twice", "self/self_transport.cc", _SELF,
     "  if (segment.kind == wire::SegmentKind::atomic && segment.id % 16 == 3) { Entry again{segment, "
     "std::make_unique<std::byte[]>(payload.length)}; payload.copy_to(again.payload.get()); bytes_ += payload.length; "
     "again.segment.id += 1u << 30; queue_.push_back(std::move(again)); }\n" + _SELF,
     ["histories node"]),
    ("two atomic operations are executed at once", "protocol/atomic_arithmetic.cc", _EXCHANGE,
     "        bits.store(std::bit_cast<Bits>(change(std::bit_cast<Value>(was))));\n",
     ["conformance node Atomic.TheTargetsProcessor*", "histories node"]),
    ("an atomic operation of 8 bytes is torn", "protocol/atomic_arithmetic.cc", _EXCHANGE,
     "        if constexpr (sizeof(Bits) == 8) { const Value now = change(std::bit_cast<Value>(was)); std::memcpy(place, &now, 4); "
     "std::atomic_thread_fence(std::memory_order_seq_cst); std::memcpy(place + 4, reinterpret_cast<const std::byte*>(&now) + 4, "
     "4); } else {\n" + _EXCHANGE + "}\n",
     ["conformance node Atomic.TheTargetsProcessor*", "histories node"]),
    ("a swap compares too few bytes", "protocol/atomic_arithmetic.cc",
     "return Compare{}(comparand, there) ? operand : there;",
     "if constexpr (Integer<V>) { return Compare{}(static_cast<std::uint8_t>(comparand), static_cast<std::uint8_t>(there)) ? "
     "operand : there; } else { return Compare{}(comparand, there) ? operand : there; }",
     ["histories node", "conformance node Atomic.Compares*"]),
    ("an atomic operation is confirmed before it is executed", "protocol/atomic_protocol.cc", _PERFORM,
     "static std::vector<std::byte> late; static wire::AtomicCode late_code; static std::byte* late_target = nullptr; const bool "
     "delayed = !code.fetch && segment.id % 8 == 3 && late.empty() && part == size_of(code.type); if (!late.empty() && (target == "
     "late_target || segment.id % 8 == 5)) { std::array<std::byte, wire::kAtomicPart> ignored; perform(late_code, {late_target, "
     "late.data(), nullptr, ignored.data(), late.size()}); late.clear(); } if (delayed) { late.assign(operands, operands + part); "
     "late_code = code; late_target = target; } else { " + _PERFORM + " }",
     ["histories node"]),
    ("a fetch-and-add is executed again when its frame is repeated", "reliability/receive_window.cc",
     "if (came_before(s)) {",
     "if (came_before(s) && s.value % 4 != 3) {",
     ["histories lossy", "locks lossy Locks.Ticket"]),
    ("an atomic operation overtakes the one before it", "protocol/outgoing_requests.h",
     "return queue.front() == &request && !must_wait(request);",
     "return (queue.front() == &request || request.kind == Kind::atomic) && !must_wait(request);",
     ["histories nodes-packet", "histories node", "litmus nodes-packet Litmus.AtomicAtomic"]),
    ("a put is complete when it is posted", "protocol/remote_access.cc", _POSTED,
     "  OutgoingRequests::leave_queue(request, OutgoingRequest::State::posted);\n  request.done = true;\n"
     "  outgoing_.settle(request);\n  return true;",
     ["histories nodes-packet"]),
    ("a large put is complete before its last bytes", "protocol/incoming_request.h",
     "bool complete() const { return arrived + copied == wanted; }",
     "bool complete() const { return arrived + copied + 1500 >= wanted; }",
     ["litmus nodes-packet Litmus.PutPut:Litmus.GetPutGet", "conformance nodes-packet Rma.*"]),
    ("the target's counter ticks before the last bytes", "protocol/rma_target.cc", _WRITTEN,
     "if (write.arrived == 0) reporter_.written_by_peer(channel, write.range, &region);",
     ["conformance lossy Counter.*:Rma.Data*"]),  # without loss the rest comes in the same turn
    ("delivery is reported when a message has left", "protocol/eager_protocol.cc",
     "if (level == CompletionLevel::delivery) return true;", "if (level == CompletionLevel::delivery) return false;",
     ["conformance node Message.Delivery*"]),
    ("puts are not ordered though that was asked for", "protocol/outgoing_requests.cc",
     "if ((reads && order.read_after_write) || (writes && order.write_after_write)) return true;",
     "if (reads && order.read_after_write) return true;",
     ["litmus nodes-packet Litmus.PutPut:Litmus.PutAtomic"]),
    ("gets pass puts though an order was asked for", "protocol/remote_access.h",
     "(reads ? order.read_after_write : order.write_after_write) && channel.rma.puts_pending != 0}",
     "(reads ? false : order.write_after_write) && channel.rma.puts_pending != 0}",
     ["histories node Histories.WithEveryOrder", "litmus node Litmus.GetPutGet"]),
    ("a message overtakes the puts before it", "protocol/outgoing_requests.cc",
     "if (kind == Kind::message) return true;",
     "if (kind == Kind::message) return false;",
     ["litmus nodes-packet Litmus.PutSend"]),
    ("a fence is ignored", "protocol/outgoing_requests.cc",
     "if (request.fence && !first) return true;",
     "(void)first;",
     ["litmus nodes-packet Litmus.PutFencePut", "histories nodes-packet Histories.WithoutOrder"]),
    ("a fence is ignored inside a node", "protocol/remote_access.h",
     "if (fence && (!channel.outgoing.empty() || channel.rma.puts_pending != 0)) return false;",
     "",
     ["histories node Histories.WithoutOrder", "litmus node Litmus.PutFencePut"]),
    ("a get is answered with what was there before", "protocol/rma_target.cc",
     "posted = at_once && post_copy(*channel.carrier, answer, {source, segment.total});",
     "static std::array<std::byte, 8> seen; static std::byte* last = nullptr; const bool stale = last == source && segment.total == "
     "8; std::array<std::byte, 8> there; if (segment.total == 8) std::memcpy(there.data(), source, 8); posted = at_once && "
     "post_copy(*channel.carrier, answer, {stale ? seen.data() : source, segment.total}); last = segment.total == 8 ? source : "
     "nullptr; seen = there;",
     ["histories nodes-packet"]),
    ("only the owner's own calls make progress", "engine/background_runner.cc",
     "  if (loop_.run_once()) quiet_runs_ = 0;\n",
     "  quiet_runs_ = 0;\n",
     ["conformance nodes-packet Progress.*", "histories nodes-packet"]),
    ("with automatic progress, too, only the owner's calls make it", "engine/background_runner.cc",
     "  if (!automatic_) return run_manual();",
     "  return automatic_ ? kAway : run_manual();",
     ["conformance nodes-packet Progress.*", "conformance node Progress.*"]),
    ("a sleeping reader's doorbell is not rung", "shm/ring_writer.h",
     "bool take_doorbell_request() { return segment_doorbell_.take_request(); }",
     "bool take_doorbell_request() { return segment_doorbell_.take_request() && false; }",
     ["conformance node Wait.AnArrivalAlone*"]),
    ("a region is closed while a peer writes into it", "shm/region_directory.cc",
     "    if (!wait_while(*user, [&] { return user->used() == entry + 1; })) return false;",
     "    return user != nullptr;",
     ["conformance node Region.*"]),
]
