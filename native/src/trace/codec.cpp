#include "pmsim/trace/codec.hpp"

#include "pmsim/core/random.hpp"
#include "pmsim/trace/format.hpp"

namespace pmsim::trace {

namespace {

using memory::OpKind;

constexpr std::size_t kMostFixedSymbols =
    1024;  // random addresses that repeat by chance must not flood the table

constexpr bool is_fixed(AddressMode mode) noexcept {
  return mode == AddressMode::kFixedFromLast || mode == AddressMode::kFixedFromSelf;
}
constexpr bool is_lines(AddressMode mode) noexcept {
  return mode == AddressMode::kLinesFromLast || mode == AddressMode::kLinesFromSelf;
}
constexpr bool is_from_self(AddressMode mode) noexcept {
  return mode == AddressMode::kFixedFromSelf || mode == AddressMode::kFromSelf ||
         mode == AddressMode::kLinesFromSelf;
}

constexpr std::uint8_t window_of(OpKind kind, std::uint64_t address) noexcept {
  const std::uint64_t window = address >> memory::kMediumShift;
  return has_place(kind) && window < 4 ? static_cast<std::uint8_t>(window) : std::uint8_t{0};
}

/// A difference in lines keeps its sign bit through the shift.
constexpr std::uint64_t in_lines(std::uint64_t difference) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(difference) >> 6);
}

}  // namespace

std::uint64_t CodecState::reference(const Symbol& symbol) const noexcept {
  const ShapeState& state = shapes[symbol.shape];
  if (!has_place(state.shape.kind))
    return 0;
  return is_from_self(symbol.mode) ? state.last_address : last_[state.shape.window];
}

void CodecState::advance(std::uint32_t id, std::uint64_t address) noexcept {
  ShapeState& state = shapes[symbols[id].shape];
  state.last_address = address;
  if (has_place(state.shape.kind))
    last_[state.shape.window] = address;
  successor_[context_] = id;
  context_ = ((context_ << 3) ^ id) & (kContexts - 1);
}

void CodecState::reset() { *this = CodecState{}; }

std::size_t Encoder::ShapeHash::operator()(const Shape& shape) const noexcept {
  return mix64(std::uint64_t{shape.bytes} << 32 | std::uint64_t{shape.site} << 16 |
               std::uint64_t{static_cast<std::uint8_t>(shape.kind)} << 8 | shape.flags) +
         shape.window;
}

std::size_t Encoder::SymbolHash::operator()(const CodecState::Symbol& symbol) const noexcept {
  return mix64(symbol.difference ^ (std::uint64_t{symbol.shape} << 40) ^
               (std::uint64_t{static_cast<std::uint8_t>(symbol.mode)} << 36));
}

bool Encoder::codes(std::uint32_t id, const Shape& shape, std::uint64_t address) const noexcept {
  if (id == CodecState::kNoSymbol)
    return false;
  const CodecState::Symbol& symbol = state_.symbols[id];
  return is_fixed(symbol.mode) && state_.shapes[symbol.shape].shape == shape &&
         address - state_.reference(symbol) == symbol.difference;
}

CodecState::Symbol Encoder::choose(std::uint32_t shape, std::uint64_t address) {
  const std::uint64_t from_last = address - state_.reference({shape, AddressMode::kFixedFromLast, 0});
  const std::uint64_t from_self = address - state_.reference({shape, AddressMode::kFixedFromSelf, 0});
  Recent& recent = recent_[shape];
  const Recent before = recent;
  recent = {from_last, from_self, true, before.has_fixed};
  const CodecState::Symbol fixed_last{shape, AddressMode::kFixedFromLast, from_last};
  const CodecState::Symbol fixed_self{shape, AddressMode::kFixedFromSelf, from_self};
  if (before.has_fixed) {
    if (symbol_ids_.contains(fixed_last))
      return fixed_last;
    if (symbol_ids_.contains(fixed_self))
      return fixed_self;
  }
  if (before.any && state_.symbols.size() < kMostFixedSymbols) {
    recent.has_fixed = before.has_fixed || from_last == before.from_last || from_self == before.from_self;
    if (from_last == before.from_last)
      return fixed_last;
    if (from_self == before.from_self)
      return fixed_self;
  }
  if (!has_place(state_.shapes[shape].shape.kind))
    return {shape, AddressMode::kFromLast, 0};
  // The other reference must save two bytes: switching between symbols costs one.
  const bool self = varint_bytes(zigzag(from_self)) + 2 <= varint_bytes(zigzag(from_last));
  const bool lines = (self ? from_self : from_last) % memory::kLineBytes == 0;
  if (self)
    return {shape, lines ? AddressMode::kLinesFromSelf : AddressMode::kFromSelf, 0};
  return {shape, lines ? AddressMode::kLinesFromLast : AddressMode::kFromLast, 0};
}

void Encoder::encode(std::span<const MicroOp> ops, EncodedChunk& chunk) {
  state_.reset();
  shape_ids_.clear();
  symbol_ids_.clear();
  recent_.clear();
  std::uint64_t run = 0;
  for (const MicroOp& op : ops) {
    const Shape shape{op.bytes, op.kind, op.flags, op.site, window_of(op.kind, op.address)};
    const std::uint32_t predicted = state_.predicted();
    if (codes(predicted, shape, op.address)) {
      ++run;
      state_.advance(predicted, op.address);
      continue;
    }
    const auto [shape_entry, new_shape] =
        shape_ids_.try_emplace(shape, static_cast<std::uint32_t>(state_.shapes.size()));
    if (new_shape) {
      state_.shapes.push_back({shape, 0});
      recent_.emplace_back();
    }
    const CodecState::Symbol symbol = choose(shape_entry->second, op.address);
    const auto [entry, new_symbol] =
        symbol_ids_.try_emplace(symbol, static_cast<std::uint32_t>(state_.symbols.size()));
    if (entry->second == predicted && !new_symbol) {
      ++run;
    } else {
      chunk.symbols.varint(run);
      run = 0;
      chunk.symbols.varint(new_symbol ? 0 : std::uint64_t{entry->second} + 1);
    }
    if (new_symbol) {
      state_.symbols.push_back(symbol);
      chunk.symbols.varint(new_shape ? 0 : std::uint64_t{symbol.shape} + 1);
      if (new_shape) {
        chunk.symbols.fixed(static_cast<std::uint8_t>(shape.kind));
        chunk.symbols.fixed(shape.flags);
        chunk.symbols.fixed(shape.window);
        chunk.symbols.varint(shape.site);
        chunk.symbols.varint(shape.bytes);
      }
      chunk.symbols.fixed(static_cast<std::uint8_t>(symbol.mode));
      if (is_fixed(symbol.mode))
        chunk.symbols.varint(zigzag(symbol.difference));
    }
    if (!is_fixed(symbol.mode)) {
      const std::uint64_t difference = op.address - state_.reference(symbol);
      chunk.differences.varint(zigzag(is_lines(symbol.mode) ? in_lines(difference) : difference));
    }
    state_.advance(entry->second, op.address);
  }
  if (run != 0)
    chunk.symbols.varint(run);
}

void Decoder::decode(std::span<const std::byte> symbols, std::span<const std::byte> differences,
                     std::uint32_t count, memory::Stream& stream) {
  state_.reset();
  ByteReader from(symbols);
  ByteReader following(differences);
  std::uint32_t done = 0;
  const auto emit = [&](std::uint32_t id) {
    const CodecState::Symbol& symbol = state_.symbols[id];
    std::uint64_t difference = symbol.difference;
    if (!is_fixed(symbol.mode)) {
      difference = unzigzag(following.varint());
      if (is_lines(symbol.mode))
        difference <<= 6;
    }
    const Shape& shape = state_.shapes[symbol.shape].shape;
    const std::uint64_t address = state_.reference(symbol) + difference;
    stream.push(shape.kind, address, shape.bytes, shape.flags, shape.site);
    state_.advance(id, address);
    ++done;
  };
  while (done < count) {
    for (std::uint64_t run = from.varint(); run != 0; --run) {
      if (done == count || state_.predicted() == CodecState::kNoSymbol)
        throw Malformed{"a run is too long"};
      emit(state_.predicted());
    }
    if (done == count)
      break;
    const std::uint64_t id = from.varint();
    if (id > state_.symbols.size())
      throw Malformed{"an unknown symbol"};
    if (id != 0) {
      emit(static_cast<std::uint32_t>(id - 1));
      continue;
    }
    std::uint64_t shape = from.varint();
    if (shape > state_.shapes.size())
      throw Malformed{"an unknown shape"};
    if (shape == 0) {
      const auto kind = from.fixed<std::uint8_t>();
      const auto flags = from.fixed<std::uint8_t>();
      const auto window = from.fixed<std::uint8_t>();
      const std::uint64_t site = from.varint();
      const std::uint64_t bytes = from.varint();
      if (kind >= memory::kOpKinds || window > 3 || site > 0xffff || bytes > 0xffff'ffff)
        throw Malformed{"a bad shape"};
      state_.shapes.push_back({{static_cast<std::uint32_t>(bytes), static_cast<OpKind>(kind), flags,
                                static_cast<std::uint16_t>(site), window},
                               0});
      shape = state_.shapes.size();
    }
    const auto mode = from.fixed<std::uint8_t>();
    if (mode >= kAddressModes)
      throw Malformed{"a bad address mode"};
    const bool fixed = is_fixed(static_cast<AddressMode>(mode));
    state_.symbols.push_back({static_cast<std::uint32_t>(shape - 1), static_cast<AddressMode>(mode),
                              fixed ? unzigzag(from.varint()) : 0});
    emit(static_cast<std::uint32_t>(state_.symbols.size() - 1));
  }
  if (!from.done() || !following.done())
    throw Malformed{"bytes are left over"};
}

}  // namespace pmsim::trace
