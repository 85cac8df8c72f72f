#include "provider/endpoint_report.h"

#include <algorithm>

namespace cluster::provider {
namespace {

/// Returns the unit of the option's value. The text of a size already contains its unit; choices and names
/// have no unit.
const char* unit_of(const OptionRow& row) {
  return row.kind == OptionKind::duration || row.kind == OptionKind::number ? row.unit : "";
}

std::uint64_t ns(Duration duration) {
  return static_cast<std::uint64_t>(std::max(duration, Duration::zero()).count());
}

std::string interface_of(const EndpointSetup& setup, std::size_t link) {
  return link < setup.interfaces.size() ? setup.interfaces[link] : "";
}

void report_flow(const reliability::FlowStats& flow, Time now, Record& record) {
  record.number("queued_frames", flow.queued)
      .number("sent_frames", flow.sent)
      .number("lost_frames", flow.lost)
      .number("retransmitted_frames", flow.retransmitted)
      .number("frame_max_bytes", flow.frame_max);
  if (flow.heard_at != Time{}) record.number("silent_ns", ns(now - flow.heard_at));
  record.flag("kernel_vouches", flow.kernel_vouches);
}

void report_rail(const multipath::PathStats& rail, const EndpointSetup& setup, Record& record) {
  record.text("interface", interface_of(setup, rail.link))
      .text("to", rail.to.text())
      .flag("up", rail.up)
      .flag("ethertype", rail.ethertype);
  if (!rail.relay.empty()) record.text("relay", rail.relay.text());
  if (rail.round_trip > Duration::zero()) record.number("rtt_ns", ns(rail.round_trip));
  if (rail.reply_longest > Duration::zero()) record.number("reply_longest_ns", ns(rail.reply_longest));
  record.number("window_frames", rail.window).number("in_flight_frames", rail.in_flight);
}

void report_peer(const engine::PeerStats& peer, const EndpointSetup& setup, Time now, Report& report) {
  Record& record = report.emplace_back("peer");
  record.text("peer", peer.name.text()).text("path", peer.carrier).text("why", peer.carrier_reason);
  record.number("state_bytes", peer.footprint).number("unexpected_messages", peer.unexpected);
  if (peer.rings) record.flag("single_copy", peer.rings->single_copy).flag("unread", peer.rings->unread);
  if (peer.lost != Status::ok)
    record.text("lost", describe(peer.lost)).number("lost_ns", ns(now - peer.lost_at));
  if (!peer.flow) return;
  report_flow(*peer.flow, now, record);
  for (const multipath::PathStats& rail : peer.flow->paths) {
    report_rail(rail, setup, report.emplace_back("rail"));
  }
}

void report_operation(const protocol::PendingOperation& what, Time now, Report& report) {
  Record& record = report.emplace_back("operation");
  record.text("operation", what.kind)
      .text("peer", what.peer.empty() ? "any" : what.peer.text())
      .number("bytes", what.length)
      .number("done_bytes", what.done);
  if (what.tagged) record.number("tag", what.tag);
  if (what.noted != Time{}) record.number("age_ns", ns(now - what.noted));
  record.text("waits_for", what.waits_for);
}

const char* state_text(os::VerbsState state) {
  switch (state) {
    case os::VerbsState::active: return "active";
    case os::VerbsState::port_down: return "down";
    case os::VerbsState::failed: return "failed";
  }
  return "";
}

void report_device(const VerbsRail& rail, Report& report) {
  const os::VerbsPort& port = rail.port;
  report.emplace_back("device")
      .text("device", port.device)
      .text("state", state_text(rail.state->load()))
      .number("port", port.port)
      .number("gid_index", port.gid_index)
      .text("gid", port.gid.ip_text())
      .number("speed_mbit", port.speed_mbit)
      .number("frame_max_bytes", port.mtu)
      .text("text", verbs_text(port));
}

}  // namespace

std::string verbs_text(const os::VerbsPort& port) {
  const std::string speed = port.speed_mbit == 0 ? "" : std::to_string(port.speed_mbit) + " Mbit/s, ";
  return "port " + port.name() + ", GID " + std::to_string(port.gid_index) + " " + port.gid.ip_text() + ", " +
         speed + "frames of at most " + std::to_string(port.mtu) + " bytes";
}

void report_options(const Options& options, Report& report) {
  options.each([&report](const OptionRow& row, const std::string& value, bool from_user) {
    report.emplace_back("option")
        .text("option", variable(row))
        .text("value", value)
        .text("unit", unit_of(row))
        .text("from", from_user ? "environment" : "default")
        .text("allowed", allowed(row))
        .text("help", row.help);
  });
}

void report_endpoint(const EndpointSetup& setup, const engine::EndpointStats& stats, Report& report) {
  report.emplace_back("endpoint")
      .text("endpoint", setup.name.text())
      .text("kind", setup.datagrams ? "datagram" : "reliable")
      .text("interface", interface_of(setup, 0))
      .text("link", setup.link)
      .text("why_link", setup.not_packet_reason)
      .number("frame_max_bytes", setup.frame_max)
      .flag("shm", setup.shm)
      .text("why_no_shm", setup.shm ? "" : setup.no_shm_reason)
      .number("open_ns", ns(stats.now - stats.since))
      .number("unexpected_messages", stats.unexpected)
      .number("operations_under_way", stats.operations_under_way);
  if (setup.rings != nullptr) {
    const os::RingUsage usage = setup.rings->usage();
    report.back()
        .number("rings_endpoints", usage.endpoints)
        .number("rings", usage.rings)
        .number("rings_bytes", usage.bytes);
  }
  if (stats.application_away > Duration{}) report.back().number("no_call_ns", ns(stats.application_away));
  for (const VerbsRail& rail : setup.verbs) report_device(rail, report);
  for (const transport::DeviceStats& reader : stats.devices) {
    report.emplace_back("reader")
        .text("device", reader.name)
        .number("queue_pairs", reader.queue_pairs)
        .number("queue_pairs_max", reader.queue_pairs_max)
        .number("registrations", reader.entries)
        .number("registered_bytes", reader.bytes)
        .number("registered_bytes_max", reader.bytes_max)
        .number("hits", reader.hits)
        .number("misses", reader.misses)
        .number("dropped", reader.dropped)
        .text("keeps_nothing_because", reader.keeps_nothing_because);
  }
  Record& counters = report.emplace_back("counters");
  stats.counters.each(
      [&counters](const char* name, std::uint64_t value, const char*) { counters.number(name, value); });
  for (const engine::PeerStats& peer : stats.peers) report_peer(peer, setup, stats.now, report);
  for (const protocol::PendingOperation& operation : stats.operations)
    report_operation(operation, stats.now, report);
  for (const protocol::StoredMessage& message : stats.messages) {
    Record& record = report.emplace_back("message");
    record.text("peer", message.peer.text()).number("bytes", message.length);
    if (message.tagged) record.number("tag", message.tag);
  }
}

}  // namespace cluster::provider
