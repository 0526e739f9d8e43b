/** A web type that the declarations of structured-headers name, and that neither Node nor this project declares. */
type BufferSource = ArrayBufferView | ArrayBuffer
