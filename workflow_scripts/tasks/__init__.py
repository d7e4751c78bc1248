"""What models are finetuned for and tested on."""
