package stream

import "github.com/semelstream/semel/codec"

// lastHeaders are the headers of the last record of each key in a
// transaction. Few topics carry headers: where there are none, nothing is kept
// and no key is encoded.
type lastHeaders[K any] struct {
	key  codec.Codec[K]
	last map[string]Headers // by encoded key
	buf  []byte
}

// note keeps the headers of key's record in place of those before.
func (h *lastHeaders[K]) note(key K, headers Headers) error {
	if len(headers) == 0 && len(h.last) == 0 {
		return nil
	}
	if err := h.encode(key); err != nil {
		return err
	}
	if len(headers) == 0 {
		delete(h.last, string(h.buf))
		return nil
	}
	if h.last == nil {
		h.last = map[string]Headers{}
	}
	h.last[string(h.buf)] = headers
	return nil
}

// of gives the headers of key's last record.
func (h *lastHeaders[K]) of(key K) (Headers, error) {
	if len(h.last) == 0 {
		return nil, nil
	}
	if err := h.encode(key); err != nil {
		return nil, err
	}
	return h.last[string(h.buf)], nil
}

// forget begins a new transaction.
func (h *lastHeaders[K]) forget() { clear(h.last) }

func (h *lastHeaders[K]) encode(key K) (err error) {
	h.buf, err = h.key.Append(h.buf[:0], key)
	return err
}
